#include "engine/rkllm/worker/worker_process.hpp"

#include <charconv>
#include <csignal>
#include <sys/types.h>
#include <system_error>
#include <utility>

#include "client/link/line_link.hpp"
#include "client/reply.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "net/process/child_process.hpp"
#include "rpc/message.hpp"

namespace sluice::rkllm {
namespace {

std::string request_text(std::uint64_t id, std::string_view method, const json::object& params) {
  return to_json(
      json::object{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
}

}  // namespace

WorkerProcess::WorkerProcess(EventLoop& loop, TokenRing ring, Owner& owner)
    : loop_(&loop), ring_(std::move(ring)), owner_(&owner) {}

WorkerProcess::~WorkerProcess() {
  if (owner_ != nullptr) loop_->unwatch(ring_.files().filled.get(), *this);
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(EventLoop& loop,
                                                            const WorkerCommand& command,
                                                            Owner& owner) {
  Result<TokenRing> ring = TokenRing::make(command.ring_bytes);
  if (!ring) return std::unexpected(std::move(ring.error()));
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(loop, std::move(*ring), owner));
  if (const Result<void> opened = process->open(command); !opened) {
    process->owner_ = nullptr;
    return std::unexpected(opened.error());
  }
  return process;
}

Result<void> WorkerProcess::open(const WorkerCommand& command) {
  const TokenRing::Files& files = ring_.files();
  Result<ChildProcess::Started> started = ChildProcess::start(
      *loop_, {.arguments = command.arguments,
               .environment = command.environment,
               .descriptors = {files.memory.get(), files.filled.get(), files.drained.get()}});
  if (!started) return std::unexpected(std::move(started.error()));
  try {
    loop_->watch(files.filled.get(), *this);
  } catch (const std::system_error& error) {
    return fail(kInternalServerError, error.what());
  }
  pid_ = started->process.pid();
  LineEnds ends{.input = std::move(started->output),
                .output = std::move(started->input),
                .process = std::move(started->process),
                .peer = "the worker"};
  // A link opens its connection when it is opened itself.
  const auto kept = std::make_shared<LineEnds>(std::move(ends));
  link_ = std::make_unique<LineLink>(
      *loop_, [kept]() -> Result<LineEnds> { return std::move(*kept); },
      LineLinkLimits{.max_message = kMaxWorkerLine, .max_queued = kMaxWorkerLine});
  link_->open(*this);
  std::ignore = ring_.may_rest();
  return {};
}

void WorkerProcess::ask(std::string_view method, const json::object& params, Answered then) {
  const std::uint64_t id = ++last_id_;
  asked_.emplace(id, std::move(then));
  // What cannot be sent is of a process whose end will be told.
  std::ignore = link_->send({.text = request_text(id, method, params)});
}

void WorkerProcess::kill() const {
  if (pid_ != 0) ::kill(-pid_, SIGKILL);
}

void WorkerProcess::on_ready(std::uint32_t /*events*/) {
  ring_.clear_filled();
  drain();
}

bool WorkerProcess::drain() {
  if (owner_ == nullptr) return false;
  const std::weak_ptr<const bool> alive = alive_;
  do {
    for (;;) {
      const Result<std::optional<TokenRecord>> next = ring_.read();
      if (!next) {
        kill();
        lose(next.error().message);
        return false;
      }
      if (!*next) break;
      owner_->on_output(**next);
      if (alive.expired() || owner_ == nullptr) return false;
    }
  } while (!ring_.may_rest());
  return true;
}

void WorkerProcess::on_message(std::string_view text) {
  // The response to a run says that it has put out everything.
  if (!drain()) return;
  const auto message = parser_.parse(text);
  if (!message || message->kind != MessageKind::response) return;
  std::uint64_t id = 0;
  std::from_chars(message->id.data(), message->id.data() + message->id.size(), id);
  const auto asked = asked_.extract(id);
  if (asked.empty()) return;
  const json::object& body = *message->body;
  const json::object* const result = object_at(body, "result");
  if (const auto error = error_of(body)) return asked.mapped()(std::unexpected(*error));
  asked.mapped()(result == nullptr ? json::object() : json::object(*result, json::storage_ptr()));
}

void WorkerProcess::on_unreadable(std::string_view /*text*/, const Error& why) {
  if (owner_ == nullptr) return;
  kill();
  lose("a message of the worker cannot be read: " + why.message);
}

void WorkerProcess::on_lost(const Error& why) {
  pid_ = 0;  // another process may get it
  // What it has put out before comes first.
  if (drain()) lose(why.message);
}

void WorkerProcess::lose(const std::string& why) {
  loop_->unwatch(ring_.files().filled.get(), *this);
  std::exchange(owner_, nullptr)->on_gone(why);
}

}  // namespace sluice::rkllm
