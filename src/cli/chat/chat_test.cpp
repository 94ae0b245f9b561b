#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <thread>
#include <variant>

#include "cli/chat/answer_queue.hpp"
#include "cli/chat/answer_stats.hpp"
#include "cli/chat/conversation.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

json::value message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

TEST(Conversation, RemembersQuestionsAndAnswers) {
  Conversation talk("Be brief.", {{"temperature", 0}});
  talk.ask("One?");
  talk.answer("1");
  talk.ask("Two?");
  EXPECT_EQ(talk.params(),
            (json::object{
                {"temperature", 0},
                {"messages", json::array{message("system", "Be brief."), message("user", "One?"),
                                         message("assistant", "1"), message("user", "Two?")}}}));
}

TEST(Conversation, TakesAnUnansweredQuestionBack) {
  Conversation talk("", {});
  talk.ask("Anyone there?");
  talk.answer("");
  talk.ask("Hello?");
  EXPECT_EQ(talk.params().at("messages"), (json::array{message("user", "Hello?")}));
}

TEST(Conversation, StartsOverWithItsSystemMessage) {
  Conversation talk("Be brief.", {});
  talk.ask("One?");
  talk.answer("1");
  talk.reset();
  EXPECT_EQ(talk.params().at("messages"), (json::array{message("system", "Be brief.")}));
}

TEST(AnswerStats, CountsByTheServersClock) {
  const TimePoint asked{};
  AnswerStats stats(asked);
  for (int i = 1; i <= 3; ++i) stats.on_delta(asked + i * 210ms);
  AnswerEnd end;
  end.finish_reason = "length";
  end.completion_tokens = 11;
  end.decode_ms = 500;
  stats.on_end(asked + 1s, end);
  EXPECT_EQ(stats.summary(), "11 tokens, 20.0 tokens/s, first after 210 ms");
  EXPECT_EQ(stats.to_object(), (json::object{{"finish_reason", "length"},
                                             {"usage", {{"completion_tokens", 11}}},
                                             {"timings", {{"decode_ms", 500.0}}},
                                             {"first_token_ms", 210.0},
                                             {"total_ms", 1000.0},
                                             {"tokens_per_second", 20.0}}));
}

TEST(AnswerStats, CountsByOurClockIfTheServerIsSilent) {
  const TimePoint asked{};
  AnswerStats stats(asked);
  for (int i = 1; i <= 5; ++i) stats.on_delta(asked + i * 100ms);
  stats.on_end(asked + 1s, {});
  EXPECT_EQ(stats.summary(), "5 tokens, 10.0 tokens/s, first after 100 ms");
}

TEST(AnswerStats, SaysOnlyWhatIsKnown) {
  const TimePoint asked{};
  AnswerStats nothing(asked);
  AnswerEnd stopped;
  stopped.outcome = AnswerEnd::Outcome::cancelled;
  nothing.on_end(asked + 1s, stopped);
  EXPECT_EQ(nothing.summary(), "0 tokens, stopped");

  AnswerStats one(asked);
  one.on_delta(asked + 1s);
  one.on_end(asked + 1s, {});
  EXPECT_EQ(one.summary(), "1 token, first after 1.0 s");
}

bool readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

TEST(AnswerQueue, HandsEventsOverInOrder) {
  AnswerQueue queue;
  EXPECT_FALSE(readable(queue.fd()));
  EXPECT_EQ(queue.take(), std::nullopt);
  queue.on_delta({AnswerDelta::Kind::reasoning, "hm"});
  queue.on_retry({0, "lost"}, 5ms);
  queue.on_end({});
  EXPECT_TRUE(readable(queue.fd()));
  const auto first = queue.take();
  ASSERT_TRUE(first && std::holds_alternative<AnswerQueue::Text>(*first));
  EXPECT_EQ(std::get<AnswerQueue::Text>(*first).text, "hm");
  EXPECT_EQ(std::get<AnswerQueue::Text>(*first).kind, AnswerDelta::Kind::reasoning);
  const auto second = queue.take();
  ASSERT_TRUE(second && std::holds_alternative<AnswerQueue::Retry>(*second));
  EXPECT_TRUE(readable(queue.fd()));
  const auto third = queue.take();
  ASSERT_TRUE(third && std::holds_alternative<AnswerEnd>(*third));
  EXPECT_FALSE(readable(queue.fd()));
  EXPECT_EQ(queue.take(), std::nullopt);
}

TEST(AnswerQueue, AFullQueueHoldsTheLoopUntilThereIsRoom) {
  AnswerQueue queue;
  const std::string big(std::size_t{600} << 10U, 'x');
  std::thread loop([&] {
    for (int i = 0; i < 20; ++i) queue.on_delta({AnswerDelta::Kind::text, big});
    queue.on_end({});
  });
  std::size_t bytes = 0;
  for (bool ended = false; !ended;) {
    pollfd wait{queue.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 10'000), 1);
    const auto event = queue.take();
    ASSERT_TRUE(event);
    if (const auto* text = std::get_if<AnswerQueue::Text>(&*event)) bytes += text->text.size();
    ended = std::holds_alternative<AnswerEnd>(*event);
  }
  loop.join();
  EXPECT_EQ(bytes, 20 * big.size());
}

TEST(AnswerQueue, AnAbandonedQueueHoldsNobody) {
  AnswerQueue queue;
  const std::string big(std::size_t{2} << 20U, 'x');
  queue.on_delta({AnswerDelta::Kind::text, big});
  std::thread loop([&] {
    queue.on_delta({AnswerDelta::Kind::text, big});  // waits for room, or finds the queue abandoned
    queue.on_end({});
  });
  queue.abandon();
  loop.join();
  EXPECT_EQ(queue.take(), std::nullopt);
}

}  // namespace
}  // namespace sluice
