#include "engine/answer/delivery.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace sluice {
namespace {

struct DeliverySink final : GenerationSink {
  bool on_delta(Delta delta) override {
    text += delta.text;
    if (inside) inside();
    return room;
  }
  void on_complete(Completion end) override {
    EXPECT_FALSE(completion);
    completion = std::move(end);
  }
  std::string text;
  bool room = true;
  std::function<void()> inside;
  std::optional<Completion> completion;
};

Delta delta(std::string text) {
  return {.kind = Delta::Kind::text, .text = std::move(text)};
}

TEST(Delivery, PassesEverythingWhileThereIsRoom) {
  const auto sink = std::make_shared<DeliverySink>();
  Delivery delivery(sink);
  delivery.deliver(delta("a"));
  delivery.deliver(delta("b"));
  EXPECT_FALSE(delivery.paused());
  delivery.complete({}, false);
  EXPECT_EQ(sink->text, "ab");
  EXPECT_TRUE(sink->completion);
  EXPECT_TRUE(delivery.done());
}

TEST(Delivery, HoldsBackWhileTheSinkIsFullAlsoTheEnd) {
  const auto sink = std::make_shared<DeliverySink>();
  Delivery delivery(sink);
  sink->room = false;
  delivery.deliver(delta("a"));
  EXPECT_TRUE(delivery.paused());
  EXPECT_FALSE(delivery.is_behind());
  delivery.deliver(delta("b"));
  EXPECT_TRUE(delivery.is_behind());
  delivery.complete({}, false);
  EXPECT_EQ(sink->text, "a");
  EXPECT_FALSE(sink->completion);

  delivery.poll();  // has no effect without resume()
  EXPECT_EQ(sink->text, "a");
  delivery.resume();
  delivery.poll();
  EXPECT_EQ(sink->text, "ab");
  EXPECT_TRUE(sink->completion) << "no delta is left to wait for";
}

TEST(Delivery, AResumeFromInsideTheSinkIsNotLost) {
  const auto sink = std::make_shared<DeliverySink>();
  Delivery delivery(sink);
  sink->room = false;
  sink->inside = [&] { delivery.resume(); };
  delivery.deliver(delta("a"));
  EXPECT_FALSE(delivery.paused());
}

TEST(Delivery, AnEarlierResumeDoesNotCount) {
  const auto sink = std::make_shared<DeliverySink>();
  Delivery delivery(sink);
  delivery.resume();
  sink->room = false;
  delivery.deliver(delta("a"));
  delivery.poll();
  EXPECT_TRUE(delivery.paused());
}

TEST(Delivery, EndsAtOnceWithoutTheRest) {
  const auto sink = std::make_shared<DeliverySink>();
  Delivery delivery(sink);
  sink->room = false;
  delivery.deliver(delta("a"));
  delivery.deliver(delta("b"));
  delivery.complete({}, true);
  EXPECT_EQ(sink->text, "a");
  EXPECT_TRUE(sink->completion);
}

}  // namespace
}  // namespace sluice
