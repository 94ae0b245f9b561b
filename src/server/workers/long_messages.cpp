#include "server/workers/long_messages.hpp"

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/sharing/client.hpp"
#include "protocol/input_rounds.hpp"
#include "rpc/message.hpp"
#include "sluice/error.hpp"

namespace sluice {
struct LongMessage::Work {
  using Parsed = std::expected<Message, MessageError>;

  void parse() {
    if (!is_batch(text)) {
      message = parser.parse(text);
      if (!message) return;
      if (may_require_input(message->method)) message->digest = digest_of(*message);
      if (check) check(*message);
      return;
    }
    batch = parser.parse_batch(text, kMaxBatch);
    if (!batch) return;
    for (const std::string_view each : *batch) {
      parsers.push_back(std::make_unique<MessageParser>());
      messages.push_back(parsers.back()->parse(each));
    }
  }
  /// Does all that is to be done on a worker.
  void run() noexcept {
    if (text.empty()) return;
    try {
      parse();
    } catch (...) {
      static LogLimit limit;
      log_exception(limit, "A long message could not be read");
      give_up(text);
    }
  }
  void give_up(std::string_view unparsed) noexcept {
    parsers.clear();
    messages.clear();
    message = std::unexpected(std::move(refusal));
    batch = std::unexpected(std::move(batch_refusal));
    try {
      message.error().id = request_id_of(unparsed);
    } catch (...) {
      // Then the error has no id.
    }
  }

  // Made before there may be no memory for them.
  MessageError refusal{{kBusy, "The server has no memory for this message; try it again", {}}, {}};
  MessageError batch_refusal = refusal;
  std::string text;
  LongMessages::Check check;
  MessageParser parser;
  Parsed message = std::unexpected(MessageError{});
  std::expected<std::vector<std::string_view>, MessageError> batch =
      std::unexpected(MessageError{});
  std::vector<std::unique_ptr<MessageParser>> parsers;  // of the batch's messages
  std::vector<Parsed> messages;
  LongMessage* owner = nullptr;  // used on the loop only; null once destroyed
};

LongMessage::LongMessage(LongMessages& all, const std::string& principal, std::string text,
                         Executor::Task ready)
    : all_(&all),
      client_(client_of(principal)),
      work_(std::make_shared<Work>()),
      ready_(std::move(ready)) {
  work_->owner = this;
  if (hold_.hold(all.memory_of(principal), text.size())) {
    work_->text = std::move(text);
  } else {
    work_->give_up(text);
  }
  all.under_way_.fetch_add(1, std::memory_order_relaxed);
}

LongMessage::LongMessage(LongMessage&& other) noexcept
    : all_(other.all_),
      client_(std::move(other.client_)),
      work_(std::move(other.work_)),
      hold_(std::move(other.hold_)),
      arrival_(std::move(other.arrival_)),
      is_ready_(other.is_ready_) {
  work_->owner = this;
  all_->clients_.find(client_)->second.current = this;
}

std::unique_ptr<LongMessage> LongMessage::take() {
  return std::unique_ptr<LongMessage>(new LongMessage(std::move(*this)));
}

LongMessage::~LongMessage() {
  if (work_ == nullptr) return;
  all_->under_way_.fetch_sub(1, std::memory_order_relaxed);
  work_->owner = nullptr;
  all_->remove(*this);
  if (all_->workers_ == nullptr) return;
  // Freeing it takes long too, so the worker does that, unless there is no memory for the job.
  // Until then it counts as the client's memory.
  try {
    all_->workers_->run(all_->workers_->new_id(), client_,
                        [hold = std::move(hold_), work = std::move(work_)] {});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

std::string_view LongMessage::text() const {
  return work_->text;
}

void LongMessage::arrived_in(std::shared_ptr<Session> session) {
  if (session != nullptr) arrival_ = std::make_unique<Session::Arrival>(std::move(session));
}

bool LongMessage::is_cancelled(const Message& message) const {
  return arrival_ != nullptr && message.kind == MessageKind::request &&
         arrival_->is_cancelled(message.id);
}

const std::expected<Message, MessageError>& LongMessage::message() const {
  return work_->message;
}

const std::expected<std::vector<std::string_view>, MessageError>& LongMessage::batch() const {
  return work_->batch;
}

const std::expected<Message, MessageError>& LongMessage::message(std::size_t index) const {
  return work_->messages[index];
}

std::unique_ptr<LongMessage> LongMessages::parse(std::string text, Executor::Task ready,
                                                 const std::string& principal, Check check) {
  const auto place = clients_.try_emplace(client_of(principal), *this).first;
  Client& client = place->second;
  client.name = place->first;
  loop_->at_turn_end(client);
  std::unique_ptr<LongMessage> message(
      new LongMessage(*this, principal, std::move(text), std::move(ready)));
  message->work_->check = std::move(check);
  client.waiting.push_back(message.get());
  return message;
}

void LongMessages::begin_next(Client& client) {
  if (client.current != nullptr || client.is_busy) return;
  if (client.waiting.empty()) {
    clients_.erase(clients_.find(client.name));
    return;
  }
  client.current = client.waiting.front();
  client.waiting.pop_front();
  client.is_busy = true;
  const std::shared_ptr<LongMessage::Work> work = client.current->work_;
  if (hand_over(client, work)) return;
  work->run();
  end(client, *work);
}

bool LongMessages::hand_over(Client& client, const std::shared_ptr<LongMessage::Work>& work) {
  if (workers_ == nullptr) return false;
  bool is_taken = true;
  try {
    // At shutdown, the worker may outlive this object. It does not outlive the loop, which then
    // runs no more tasks.
    // What the loop is told is made here: when the worker is done, there may be no memory for it,
    // and the client's other messages would wait for ever.
    Executor::Task told = [this, &client, work] { end(client, *work); };
    auto job = [loop = loop_, told = std::move(told), work]() mutable {
      work->run();
      loop->post(std::move(told));
    };
    workers_->run(workers_->new_id(), client.name, std::move(job),
                  [&is_taken] { is_taken = false; });
  } catch (const std::bad_alloc&) {
    return false;
  }
  return is_taken;
}

void LongMessages::end(Client& client, LongMessage::Work& work) {
  client.is_busy = false;
  if (work.owner == nullptr) {
    loop_->at_turn_end(client);
    return;
  }
  work.owner->is_ready_ = true;
  // Moved out first, because `ready` may destroy the message.
  Executor::Task ready = std::move(work.owner->ready_);
  ready();
}

void LongMessages::remove(LongMessage& message) {
  Client& client = clients_.find(message.client_)->second;
  std::erase(client.waiting, &message);
  if (client.current == &message) client.current = nullptr;
  loop_->at_turn_end(client);
}

}  // namespace sluice
