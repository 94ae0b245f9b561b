#include "net/lines/line_protocol.hpp"

#include <utility>

namespace sluice {

LineProtocol::LineProtocol(Connection& connection, const LineOptions& options)
    : connection_(&connection), options_(&options), reader_(options.max_line) {}

void LineProtocol::begin(Connection& connection, LineService& service, const LinePeer& peer,
                         const LineOptions& options) {
  const LineProtocolPtr session(new LineProtocol(connection, options));
  session->handler_ = service.open(session, peer);
  session->add_reference();
  connection.start(ConnectionProtocolPtr(session.get()));
}

void LineProtocol::charge_to(std::shared_ptr<MemoryShare> client) {
  if (connection_ != nullptr) connection_->charge_to(std::move(client));
}

bool LineProtocol::send(std::string_view lines) {
  if (!is_open() || !connection_->may_send()) return !connection_ || !connection_->is_over();
  connection_->output().append(lines);
  return connection_->added();
}

bool LineProtocol::take(std::string lines) {
  if (!is_open() || !connection_->may_send()) return true;
  connection_->output();
  connection_->take(std::move(lines));
  return connection_->added();
}

bool LineProtocol::send(const Bytes& lines) {
  if (!is_open() || !connection_->may_send()) return !connection_ || !connection_->is_over();
  connection_->queue(lines, 0, lines.size());
  return connection_->added();
}

void LineProtocol::flush() {
  if (connection_) connection_->flush();
}

void LineProtocol::resume_input() {
  input_paused_ = false;
  if (connection_) connection_->resume_later();
}

void LineProtocol::close() {
  if (connection_) connection_->close_after_flush();
}

std::size_t LineProtocol::queued_bytes() const {
  return connection_ ? connection_->queued_bytes() : 0;
}

// --- input -------------------------------------------------------------------------------------

bool LineProtocol::wants_input(const InputBuffer& /*input*/) const {
  return !input_ended_ && !input_paused_ && !connection_->is_output_full();
}

bool LineProtocol::on_input(InputBuffer& input) {
  if (end_told_) {
    input.clear();
    return false;
  }
  if (input_paused_) return false;
  if (is_other_protocol(input.view())) {
    input.clear();
    end_input();
    end_told_ = true;
    handler_->on_other_protocol();
    return false;
  }
  if (take_line()) return true;
  if (!input.empty()) {
    reader_.append(input.view());
    input.clear();
    has_lines_ = true;
    return true;
  }
  has_lines_ = false;
  if (!reader_.in_line()) {
    line_at_ = {};
  } else if (line_at_ == TimePoint{}) {
    line_at_ = connection_->worker().now();
  }
  if (!hold_.hold(connection_->memory(), reader_.held_bytes())) {
    connection_->give_up();
  }
  return false;
}

/// Looks at the first byte that is no blank.
bool LineProtocol::is_other_protocol(std::string_view input) {
  if (has_begun_ || !options_->begins_with_json) return false;
  const std::size_t first = input.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  has_begun_ = input[first] == '{' || input[first] == '[';
  return !has_begun_;
}

/// Passes the next line to the handler. Returns false if there is none.
bool LineProtocol::take_line() {
  const LineReader::Next next = reader_.next();
  if (next.kind == LineReader::Next::Kind::none) return false;
  line_at_ = {};
  ServerCounters::add(connection_->worker().counters.requests_total);
  connection_->worked(kMessageCost);
  if (next.kind == LineReader::Next::Kind::line) {
    input_paused_ = !handler_->on_line(next.line);
  } else {
    handler_->on_long_line();
  }
  return true;
}

void LineProtocol::on_no_memory() {
  connection_->give_up();
}

void LineProtocol::on_input_end() {
  if (!std::exchange(input_ended_, true)) {
    // The rest is a line even without an end.
    reader_.end();
    has_lines_ = true;
    ended_at_ = connection_->worker().now();
    connection_->resume_later();
  } else if (!has_lines_ && !input_paused_) {
    tell_end();
  }
}

void LineProtocol::tell_end() {
  if (std::exchange(end_told_, true)) return;
  if (connection_->is_output_lost()) {
    connection_->give_up();
  } else {
    handler_->on_input_end();
  }
}

// --- life --------------------------------------------------------------------------------------

void LineProtocol::on_drain() {
  handler_->on_drain();
}

void LineProtocol::on_tick(TimePoint now) {
  const auto is_late = [now](TimePoint since, Duration timeout) {
    return timeout != Duration{} && now - since >= timeout;
  };
  // While a peer does not read, nothing is read from it. That time does not count for its line.
  if (line_at_ != TimePoint{} && connection_->is_output_full()) line_at_ = now;
  const bool is_slow = line_at_ != TimePoint{} && is_late(line_at_, options_->line_timeout);
  // The end of the input is not read while the peer leaves too much unread, nor while the handler
  // takes no more.
  const bool is_stuck = connection_->is_at_end() && connection_->is_output_full();
  const bool is_unread = connection_->is_at_end() && input_paused_;
  if ((is_stuck || is_unread) && ended_at_ == TimePoint{}) ended_at_ = now;
  const bool has_ended =
      end_told_ || is_unread || (is_stuck && connection_->stalled_for() >= options_->end_timeout);
  if (is_slow || (has_ended && is_late(ended_at_, options_->end_timeout))) {
    connection_->note_timeout(is_slow ? "a line" : "the end of its connection");
    connection_->give_up();
  }
}

void LineProtocol::on_shutdown() {
  if (end_told_) return;
  end_input();
  tell_end();
}

void LineProtocol::end_input() {
  reader_.clear();
  has_lines_ = false;
  input_ended_ = true;
  ended_at_ = connection_->worker().now();
}

void LineProtocol::on_end() {
  hold_.release();
  connection_ = nullptr;
  if (const std::unique_ptr<LineHandler> handler = std::move(handler_)) handler->on_close();
}

}  // namespace sluice
