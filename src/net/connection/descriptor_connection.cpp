#include "net/connection/descriptor_connection.hpp"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <system_error>
#include <utility>

#include "core/log/log.hpp"

namespace sluice {

DescriptorConnection::DescriptorConnection(ConnectionWorker& worker, const OutputLimits& limits,
                                           Descriptor input, Descriptor output,
                                           ConnectionTicket ticket, Executor::Task ended)
    : Connection(worker, {}, limits, false),
      in_(std::move(input)),
      out_(std::move(output)),
      source_(in_.get()),
      sink_(out_ ? out_.get() : in_.get()),
      input_side_(*this, true, !out_),
      output_side_(*this, false, true),
      ticket_(std::move(ticket)),
      ended_(std::move(ended)) {
  begin_readable();
}

void DescriptorConnection::on_side(std::uint32_t events, bool reads, bool writes) {
  const bool has_gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  // This descriptor is for output alone and nobody reads it. There is no reason to go on.
  if (writes && !reads && has_gone) {
    give_up();
    return;
  }
  unsigned readiness = 0;
  if (reads && (has_gone || (events & (EPOLLIN | EPOLLRDHUP)) != 0)) readiness |= kReadable;
  if (reads && (has_gone || (events & EPOLLRDHUP) != 0)) readiness |= kInputEnd;
  if (writes && (events & EPOLLOUT) != 0) readiness |= kWritable;
  if (writes && has_gone) readiness |= kGone;
  on_ready(readiness);
}

IoResult DescriptorConnection::write_some(std::span<const iovec> parts) {
  const IoResult result = sink_.write(parts);
  // epoll does not report that a descriptor for output alone cannot be written, as on a full disk.
  // Without output, there is nobody to answer.
  if (result.status != IoStatus::failed || !out_ || is_over()) return result;
  // EPIPE: the reader of the pipe has gone, which is the ordinary end.
  if (errno != EPIPE) {
    log_error("the output cannot be written", {{"why", std::strerror(errno)}});
  }
  give_up();
  return result;
}

bool DescriptorConnection::attach() {
  try {
    watch(in_, input_side_);
    if (out_) watch(out_, output_side_);
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void DescriptorConnection::watch(const Descriptor& descriptor, Side& side) {
  try {
    worker().sockets->watch(descriptor.get(), side);
  } catch (const std::system_error& error) {
    // With EPERM, epoll says that this is always ready.
    if (error.code().value() != EPERM) throw;
  }
}

void DescriptorConnection::detach() {
  worker().sockets->unwatch(in_.get(), input_side_);
  if (out_) worker().sockets->unwatch(out_.get(), output_side_);
}

void DescriptorConnection::close() {
  in_.close();
  out_.close();
  const ConnectionTicket gone = std::move(ticket_);
  if (ended_) worker().loop.post(std::exchange(ended_, {}));
}

}  // namespace sluice
