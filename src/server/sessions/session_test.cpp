#include "server/sessions/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/allocation_failure_test_support.hpp"
#include "core/manual_executor.hpp"
#include "rpc/error_codes.hpp"
#include "server/sessions/session_registry.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  /// Hands the session the message `text`.
  bool receive(std::string_view text) {
    MessageParser parser;
    const auto message = parser.parse(text);
    if (!message) {
      ADD_FAILURE() << message.error().error.message;
      return false;
    }
    return session->on_response(*message);
  }

  ManualExecutor loop;
  std::shared_ptr<Session> session =
      std::make_shared<Session>("s1", "alice", newest_revision(Era::legacy), ClientDescription());
};

TEST_F(SessionTest, CancelsTheCallOfThatIdOnItsLoop) {
  int cancelled = 0;
  const auto call = Session::add_call(session, "\"a\"", loop, [&] { ++cancelled; });
  ASSERT_TRUE(call);
  session->cancel_call("a");
  session->cancel_call("\"b\"");
  loop.run();
  EXPECT_EQ(cancelled, 0);
  session->cancel_call("\"a\"");
  EXPECT_EQ(cancelled, 0) << "not under the feet of who cancels";
  loop.run();
  EXPECT_EQ(cancelled, 1);
}

TEST_F(SessionTest, RemembersWhatIsCancelledBeforeItIsKnown) {
  session->cancel_call("1");
  auto first = std::make_unique<Session::Arrival>(session);
  EXPECT_FALSE(first->is_cancelled("1")) << "it was cancelled before this arrived";
  session->cancel_call("2");
  EXPECT_TRUE(first->is_cancelled("2"));
  const Session::Arrival second(session);
  first = nullptr;
  EXPECT_TRUE(second.is_cancelled("2"));
  const std::string longest(Session::kMaxEarlyId, '1');
  session->cancel_call(longest + "1");
  session->cancel_call(longest);
  EXPECT_FALSE(second.is_cancelled(longest + "1"));
  EXPECT_TRUE(second.is_cancelled(longest));
  for (std::size_t i = 1; i < Session::kMaxEarlyCancellations; ++i) {
    session->cancel_call("\"" + std::to_string(i) + "\"");
  }
  EXPECT_FALSE(second.is_cancelled("2"));
  EXPECT_TRUE(second.is_cancelled(longest));
}

TEST_F(SessionTest, RefusesASecondCallOfAnIdWhileTheFirstIsUnderWay) {
  auto call = Session::add_call(session, "1", loop, [] {});
  ASSERT_TRUE(call);
  const auto again = Session::add_call(session, "1", loop, [] {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, kInvalidRequest);
  call->reset();
  EXPECT_TRUE(Session::add_call(session, "1", loop, [] {}));
}

TEST_F(SessionTest, ACallMayBeHandedOver) {
  int before = 0;
  int after = 0;
  const auto call = Session::add_call(session, "1", loop, [&] { ++before; });
  ASSERT_TRUE(call);
  ManualExecutor other;
  (*call)->hand_over(other, [&] { ++after; });
  other.run();
  EXPECT_EQ(after, 0);
  session->cancel_call("1");
  loop.run();
  other.run();
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 1);
}

TEST_F(SessionTest, ACallThatIsHandedOverWhileItIsCancelledIsCancelled) {
  for (const bool all : {false, true}) {
    int after = 0;
    const auto call = Session::add_call(session, "1", loop, [] {});
    ASSERT_TRUE(call);
    if (all) {
      session->end();
    } else {
      session->cancel_call("1");
    }
    (*call)->hand_over(loop, [&] { ++after; });
    EXPECT_EQ(after, 0) << "not under the feet of who hands it over";
    loop.run();
    EXPECT_EQ(after, 1) << all;
  }
}

TEST_F(SessionTest, HoldsNoMoreCallsThanItsLimit) {
  std::vector<std::unique_ptr<Session::Call>> calls;
  for (std::size_t i = 0; i < Session::kMaxCalls; ++i) {
    auto call = Session::add_call(session, std::to_string(i), loop, [] {});
    ASSERT_TRUE(call);
    calls.push_back(std::move(*call));
  }
  const auto beyond = Session::add_call(session, "beyond", loop, [] {});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, kLimitReached);
}

TEST_F(SessionTest, GivesTheClientsAnswerToWhoeverAsked) {
  std::vector<std::string> heard;
  const auto listen = [&](Result<json::value> answer) {
    heard.push_back(answer ? to_json(*answer)
                           : std::to_string(answer.error().code) + " " + answer.error().message);
  };
  const Result<RequestId> first = session->expect_response(loop, listen);
  const Result<RequestId> second = session->expect_response(loop, listen);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(receive(R"({"jsonrpc":"2.0","id":)" + *second +
                      R"(,"error":{"code":-1,"message":"User rejected"}})"));
  EXPECT_TRUE(receive(R"({"jsonrpc":"2.0","id":)" + *first + R"(,"result":{"roots":[]}})"));
  EXPECT_FALSE(receive(R"({"jsonrpc":"2.0","id":)" + *first + R"(,"result":{}})"))
      << "answered once";
  EXPECT_FALSE(receive(R"({"jsonrpc":"2.0","id":"never asked","result":{}})"));
  loop.run();
  EXPECT_EQ(heard, (std::vector<std::string>{"-1 User rejected", R"({"roots":[]})"}));
  heard.clear();
  for (const char* code : {"0", "1099511627776", "1.5", "\"1\""}) {
    const Result<RequestId> id = session->expect_response(loop, listen);
    receive(R"({"jsonrpc":"2.0","id":)" + *id + R"(,"error":{"code":)" + code +
            R"(,"message":"odd"}})");
  }
  loop.run();
  EXPECT_EQ(heard, (std::vector<std::string>{"0 odd", "-32603 odd", "-32603 odd", "-32603 odd"}));
}

TEST_F(SessionTest, ForgetsWhoNoLongerWaits) {
  const Result<RequestId> id =
      session->expect_response(loop, [](const Result<json::value>&) { FAIL(); });
  ASSERT_TRUE(id);
  session->forget_response(*id);
  EXPECT_FALSE(receive(R"({"jsonrpc":"2.0","id":)" + *id + R"(,"result":{}})"));
  loop.run();
}

TEST_F(SessionTest, IsInUseWhileItIsRead) {
  session->touch(loop.clock().now());
  auto first = Session::add_reader(session, loop, [] {});
  auto second = Session::add_reader(session, loop, [] {});
  first.reset();
  EXPECT_FALSE(session->idle_since());
  second.reset();
  EXPECT_TRUE(session->idle_since());
}

TEST_F(SessionTest, EndingCancelsWhatIsUnderWayAndTakesNothingNew) {
  std::string told;
  const auto call = Session::add_call(session, "1", loop, [&] { told += "call "; });
  auto gone = Session::add_reader(session, loop, [&] { told += "gone"; });
  const auto reader = Session::add_reader(session, loop, [&] { told += "reader"; });
  gone.reset();
  session->end();
  loop.run();
  EXPECT_EQ(told, "call reader");
  EXPECT_FALSE(Session::add_call(session, "2", loop, [] {}));
  EXPECT_FALSE(session->expect_response(loop, [](const Result<json::value>&) {}));
  EXPECT_EQ(Session::add_reader(session, loop, [] {}), nullptr);
}

TEST_F(SessionTest, RemembersSubscriptionsWithinTheirLimit) {
  for (std::size_t i = 0; i < Session::kMaxSubscriptions; ++i) {
    ASSERT_TRUE(session->subscribe("test://" + std::to_string(i)));
  }
  EXPECT_TRUE(session->subscribe("test://0")) << "that is no new one";
  const Result<void> beyond = session->subscribe("test://beyond");
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, kLimitReached);
  session->unsubscribe("test://0");
  EXPECT_FALSE(session->subscribed("test://0"));
  EXPECT_TRUE(session->subscribed("test://1"));
  EXPECT_TRUE(session->subscribe("test://beyond"));
}

TEST_F(SessionTest, LimitsTheBytesOfItsSubscriptions) {
  const std::string half(Session::kMaxSubscribedBytes / 2, 'x');
  ASSERT_TRUE(session->subscribe(half));
  ASSERT_TRUE(session->subscribe("y" + half.substr(1)));
  EXPECT_TRUE(session->subscribe(half)) << "that is no new one";
  EXPECT_EQ(session->subscribe("z").error().code, kLimitReached);
  session->unsubscribe("nothing");
  session->unsubscribe(half);
  EXPECT_TRUE(session->subscribe("z"));
}

TEST_F(SessionTest, SubscriptionsDrawOnTheMemoryOfTheirClient) {
  MemoryBudget budget(200'000);
  ClientMemory clients(budget);
  const std::string uri(20'000, 'x');
  const auto subscribe = [&](Session& to, const std::string& uri_of) {
    return to.subscribe(uri_of, clients.of(to.principal()));
  };
  EXPECT_TRUE(subscribe(*session, "a" + uri));
  EXPECT_TRUE(subscribe(*session, "b" + uri));
  EXPECT_TRUE(subscribe(*session, "b" + uri));
  EXPECT_GT(budget.used(), 80'000U) << "a change of each may wait";
  // The client gets no more memory in another session, but other clients do.
  Session second("t", session->principal(), newest_revision(Era::legacy), {});
  EXPECT_EQ(subscribe(second, "c" + uri).error().code, kLimitReached);
  Session other("u", "bob", newest_revision(Era::legacy), {});
  EXPECT_TRUE(subscribe(other, "c" + uri));
  session->unsubscribe("a" + uri);
  session->unsubscribe("a" + uri);
  EXPECT_TRUE(subscribe(second, "c" + uri));
  session->end();
  second.end();
  other.end();
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_FALSE(subscribe(*session, "d"));
}

TEST_F(SessionTest, KeepsMissedChangesAsLongAsTheClientWantsThem) {
  const auto taken = [this] {
    std::string subjects;
    while (const auto change = session->take_missed()) subjects += change->subject + ";";
    return subjects;
  };
  const auto miss_all = [this] {
    for (int twice = 0; twice < 2; ++twice) {
      session->miss({.kind = Change::Kind::tools});
      for (const char* uri : {"a", "b", "c"}) session->miss({Change::Kind::resource, uri});
      session->miss({Change::Kind::elicitation, "first page"});
    }
  };
  ASSERT_TRUE(session->subscribe("a") && session->subscribe("b"));
  session->ask_to_open("first page");
  miss_all();
  EXPECT_EQ(taken(), "first page;;a;b;");
  EXPECT_EQ(taken(), "");
  miss_all();
  session->unsubscribe("a");
  for (std::size_t i = 0; i < Session::kMaxElicitations; ++i) session->ask_to_open("page");
  EXPECT_EQ(taken(), ";b;");
  miss_all();
  session->end();
  miss_all();
  EXPECT_EQ(taken(), "");
}

TEST_F(SessionTest, RemembersTheNewestElicitations) {
  for (std::size_t i = 0; i <= Session::kMaxElicitations; ++i) {
    session->ask_to_open("page-" + std::to_string(i));
  }
  EXPECT_FALSE(session->asked_to_open("page-0"));
  EXPECT_TRUE(session->asked_to_open("page-1"));
  EXPECT_TRUE(session->asked_to_open("page-" + std::to_string(Session::kMaxElicitations)));
}

class SessionRegistryTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<Session>> begin(const std::string& principal = "alice") {
    return registry.create(principal, newest_revision(Era::legacy), {});
  }
  /// A session with a call under way.
  struct Busy {
    std::shared_ptr<Session> session;
    std::unique_ptr<Session::Call> call;
  };
  Busy busy(const std::string& principal = "alice") {
    Busy busy{.session = begin(principal).value(), .call = nullptr};
    busy.call = Session::add_call(busy.session, "1", loop, [] {}).value();
    return busy;
  }

  ManualExecutor loop;
  SessionRegistry registry{{.max_sessions = 3, .per_client = 2, .expiry = 10s}, loop.clock()};
};

TEST_F(SessionRegistryTest, FindsASessionForItsPrincipalOnly) {
  const auto session = begin();
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->id().size(), SessionRegistry::kIdLength);
  EXPECT_EQ(registry.find((*session)->id(), "alice"), *session);
  EXPECT_EQ(registry.find((*session)->id(), "mallory"), nullptr);
  EXPECT_EQ(registry.find("", "alice"), nullptr);
}

TEST_F(SessionRegistryTest, KeepsToItsLimitsWhileAllAreBusy) {
  const auto first = busy();
  const auto second = busy();
  const auto third = begin();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, kLimitReached);
  EXPECT_THAT(third.error().message, HasSubstr("DELETE"));
  const auto of_bob = busy("bob");
  const auto full = begin("bob");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, kLimitReached);
  EXPECT_THAT(full.error().message, HasSubstr("max-sessions"));
  registry.remove(*second.session);
  registry.remove(*second.session);
  EXPECT_EQ(registry.size(), 2U);
  EXPECT_TRUE(second.session->ended());
  EXPECT_TRUE(begin("carol"));
  EXPECT_EQ(registry.displaced(), 0U);
}

TEST_F(SessionRegistryTest, ANetworkOfIpv6IsOneClient) {
  const auto first = busy("2001:db8::1");
  const auto second = busy("2001:db8::2");
  EXPECT_FALSE(begin("2001:db8::3"));
  EXPECT_EQ(registry.find(first.session->id(), "2001:db8::2"), nullptr) << "it is not theirs";
  const auto elsewhere = busy("2001:db8:0:1::1");
  registry.remove(*first.session);
  EXPECT_TRUE(begin("2001:db8::3"));
}

TEST_F(SessionRegistryTest, OnesOwnIdleSessionMakesRoomAtOnesOwnLimit) {
  const auto first = begin().value();
  loop.advance(1s);
  const auto second = begin().value();
  loop.advance(1s);
  const auto of_bob = begin("bob").value();
  EXPECT_NE(registry.find(first->id(), "alice"), nullptr);
  loop.advance(1s);
  EXPECT_TRUE(begin());
  EXPECT_TRUE(second->ended()) << "it was used longest ago";
  EXPECT_EQ(registry.find(second->id(), "alice"), nullptr);
  EXPECT_FALSE(first->ended());
  EXPECT_FALSE(of_bob->ended());
  EXPECT_EQ(registry.size(), 3U);
  EXPECT_EQ(registry.displaced(), 1U);
}

TEST_F(SessionRegistryTest, WhoHasNoneAlwaysGetsOne) {
  SessionRegistry many({.max_sessions = 100, .per_client = 50}, loop.clock());
  const auto begin_of = [&](const std::string& principal) {
    return many.create(principal, newest_revision(Era::legacy), {});
  };
  const auto of_alice = begin_of("alice").value();
  std::vector<std::shared_ptr<Session>> kept;
  for (int client = 0; client < 10; ++client) {
    for (int i = 0; i < 60; ++i) {
      kept.push_back(begin_of("mallory" + std::to_string(client)).value());
    }
  }
  EXPECT_EQ(many.size(), 100U);
  for (int i = 0; i < 200; ++i) {
    loop.advance(1ms);
    ASSERT_TRUE(begin_of("bob" + std::to_string(i)));
    EXPECT_NE(many.find(of_alice->id(), "alice"), nullptr) << i;
  }
  EXPECT_EQ(many.size(), 100U);
}

TEST_F(SessionRegistryTest, WhoHasMostEndsOneEvenIfAllAreBusy) {
  const auto first = busy();
  const auto second = busy();
  const auto of_bob = busy("bob");
  const auto of_carol = busy("carol");
  ASSERT_NE(of_carol.session, nullptr);
  EXPECT_TRUE(first.session->ended() != second.session->ended());
  EXPECT_FALSE(of_bob.session->ended());
  // Now each client has one session.
  EXPECT_FALSE(begin("dave"));
}

TEST_F(SessionRegistryTest, OneThatIsKeptElsewhereEndsToo) {
  struct Elsewhere final : SessionRegistry::Reservation {
    [[nodiscard]] const std::string& principal() const override { return name; }
    void end_later() override { ++ended; }
    std::string name = "alice";
    int ended = 0;
  };
  Elsewhere first;
  Elsewhere second;
  Elsewhere third;
  ASSERT_TRUE(registry.take(first));
  ASSERT_TRUE(registry.take(second));
  EXPECT_FALSE(registry.take(third));
  const auto of_bob = begin("bob").value();
  ASSERT_TRUE(begin("carol"));
  EXPECT_EQ(first.ended, 1);
  EXPECT_EQ(second.ended, 0);
  EXPECT_FALSE(of_bob->ended()) << "he has only this one";
  EXPECT_EQ(registry.size(), 3U);
  registry.give_back(first);
  EXPECT_EQ(registry.size(), 3U) << "its place had been given away";
  registry.give_back(second);
  EXPECT_EQ(registry.size(), 2U);
}

TEST_F(SessionRegistryTest, EndsSessionsThatNobodyUses) {
  const auto used = begin();
  const auto busy = begin();
  const auto idle = begin("bob");
  ASSERT_TRUE(used && busy && idle);
  auto call = Session::add_call(*busy, "1", loop, [] {});
  loop.advance(6s);
  EXPECT_NE(registry.find((*used)->id(), "alice"), nullptr);
  loop.advance(6s);
  registry.sweep();
  EXPECT_EQ(registry.find((*idle)->id(), "bob"), nullptr);
  EXPECT_NE(registry.find((*used)->id(), "alice"), nullptr);
  loop.advance(6s);
  call->reset();
  registry.sweep();
  EXPECT_FALSE((*busy)->ended()) << "it was busy a moment ago";
  loop.advance(10s);
  registry.sweep();
  EXPECT_EQ(registry.size(), 0U);
}

TEST_F(SessionRegistryTest, NeedsNoMemoryToEndWhatNobodyUses) {
  for (const char* const client : {"alice", "bob", "carol"}) ASSERT_TRUE(begin(client));
  loop.advance(20s);
  allocations_left = 1;
  registry.sweep();
  EXPECT_EQ(std::exchange(allocations_left, 0), 1U);
  EXPECT_EQ(registry.size(), 0U);
}

// --- what handlers keep ----------------------------------------------------------------------

SessionStorage* storage_in_use = nullptr;
const int first_type = 0, second_type = 0;
std::shared_ptr<void> make_number() {
  return std::make_shared<int>();
}

TEST(SessionStorage, NobodyWaitsWhileAValueIsMade) {
  SessionStorage storage;
  storage_in_use = &storage;
  // While it is being made, others are found, and even made.
  const auto made = storage.value(&first_type, []() -> std::shared_ptr<void> {
    EXPECT_NE(storage_in_use->value(&second_type, make_number), nullptr);
    return storage_in_use->value(&first_type, make_number);
  });
  EXPECT_EQ(storage.value(&first_type, nullptr), made);
}

}  // namespace
}  // namespace sluice
