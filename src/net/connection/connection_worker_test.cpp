#include "net/connection/connection_worker.hpp"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "core/manual_executor.hpp"
#include "net/connection/memory_connection.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// Each byte of input is a request that takes all that a connection may do in its turn.
class BusyProtocol final : public ConnectionProtocol {
 public:
  BusyProtocol(Connection& connection, std::string name, std::vector<std::string>& log)
      : connection_(&connection), name_(std::move(name)), log_(&log) {}

  bool on_input(InputBuffer& input) override {
    input.consume(1);
    log_->push_back(name_);
    connection_->worked(connection_->worker().work().connection);
    return !input.empty();
  }
  [[nodiscard]] bool holds_input() const override { return false; }
  [[nodiscard]] bool wants_input(const InputBuffer& /*input*/) const override { return true; }
  void on_no_memory() override {}
  void on_input_end() override {}
  void on_drain() override { log_->push_back(name_ + " drained"); }
  [[nodiscard]] bool outlives_output() const override { return false; }
  void on_tick(TimePoint /*now*/) override {}
  void on_shutdown() override {}
  [[nodiscard]] bool is_idle() const override { return false; }
  void on_worker(ConnectionWorker& /*worker*/) override {}
  void on_end() override {}
  void release() override { delete this; }

 private:
  Connection* connection_;
  std::string name_;
  std::vector<std::string>* log_;
};

class ConnectionWorkerTest : public ::testing::Test {
 protected:
  RefPtr<MemoryConnection> connect(const char* address, std::shared_ptr<MemoryShare> charged_to) {
    RefPtr<MemoryConnection> connection(
        new MemoryConnection(worker, limits, PeerAddress::parse(address).value()));
    connection->start(ConnectionProtocolPtr(new BusyProtocol(*connection, address, log)));
    connection->charge_to(std::move(charged_to));
    return connection;
  }
  /// How many requests were served before the one of `connection`, which comes after those of 100
  /// connections of another client.
  std::size_t served_before(MemoryConnection& connection, const std::string& name) {
    for (const auto& each : others) each->write("xxx");
    connection.write("x");
    executor.run();
    EXPECT_EQ(log.size(), 301U);
    return static_cast<std::size_t>(std::ranges::find(log, name) - log.begin());
  }

  ManualExecutor executor;
  OutputLimits limits;
  ConnectionWorker worker{executor, nullptr, {}};
  std::vector<std::string> log;
  std::vector<RefPtr<MemoryConnection>> others;
};

TEST_F(ConnectionWorkerTest, AClientWithManyConnectionsDelaysNoOther) {
  for (int i = 0; i < 100; ++i) others.push_back(connect("192.0.2.1", nullptr));
  const auto connection = connect("192.0.2.2", nullptr);
  EXPECT_LE(served_before(*connection, "192.0.2.2"), 10U);
}

TEST_F(ConnectionWorkerTest, AClientIsWhomItsConnectionsAreChargedTo) {
  MemoryBudget budget(1'000'000);
  const auto one = std::make_shared<MemoryShare>(budget);
  for (int i = 0; i < 100; ++i) others.push_back(connect("2001:db8::1", one));
  // Both come through the same proxy.
  const auto connection = connect("2001:db8::2", std::make_shared<MemoryShare>(budget));
  EXPECT_LE(served_before(*connection, "2001:db8::2"), 10U);
}

TEST_F(ConnectionWorkerTest, ManyPeersThatReadAgainAreSentMoreInSeveralTurns) {
  for (int i = 0; i < 100; ++i) {
    others.push_back(connect("192.0.2.1", nullptr));
    others.back()->output().append(std::size_t{300} << 10U, 'x');
    EXPECT_FALSE(others.back()->added());
  }
  executor.run();
  for (const auto& each : others) EXPECT_EQ(each->take().size(), std::size_t{300} << 10U);
  EXPECT_LE(log.size(), 20U);
  executor.run();
  EXPECT_EQ(log.size(), 100U);
}

TEST_F(ConnectionWorkerTest, AStepBeginsWhereTheOneBeforeHasEnded) {
  EXPECT_EQ(worker.end_step(), 0ms);
  worker.begin_step();
  executor.stall(3ms);
  EXPECT_EQ(worker.end_step(), 3ms);
  executor.stall(1ms);
  worker.begin_step();
  executor.stall(2ms);
  EXPECT_EQ(worker.end_step(), 3ms);
}

TEST_F(ConnectionWorkerTest, AStepDoesNotCountWhatCameBetweenTheTurnsOrHasInterruptedTheSteps) {
  const auto counted = [&] {
    worker.begin_step();
    executor.stall(2ms);
    return worker.end_step();
  };
  EXPECT_EQ(counted(), 2ms);
  executor.run();
  executor.stall(1h);
  EXPECT_EQ(counted(), 2ms);
  executor.stall(1h);
  worker.interrupt_steps();
  EXPECT_EQ(counted(), 2ms);
}

}  // namespace
}  // namespace sluice
