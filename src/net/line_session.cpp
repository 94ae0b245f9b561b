#include "net/line_session.hpp"

#include <utility>

namespace sluice {

LineSession::LineSession(BufferPool& pool, const LineOptions& options)
    : options_(&options), reader_(options.max_line), output_(pool, options.output), pool_(&pool) {}

bool LineSession::send(std::string_view lines) {
  if (!may_send()) return true;
  output_.text().append(lines);
  return queued();
}

bool LineSession::send(const Bytes& lines) {
  if (lines.size() <= kCopiedBlock) return send(lines.view());
  if (!may_send()) return true;
  output_.share(lines, 0, lines.size());
  return queued();
}

bool LineSession::may_send() {
  if (state_ != State::open || output_lost_) return false;
  if (output_.has_room()) return true;
  give_up();
  return false;
}

bool LineSession::queued() {
  output_changed();
  return output_.added();
}

void LineSession::close() {
  if (state_ != State::open) return;
  state_ = State::closing;
  if (output_.empty()) {
    give_up();
  } else {
    output_changed();
  }
}

void LineSession::feed(std::string_view bytes) {
  reader_.append(bytes);
  process();
}

void LineSession::end_input() {
  input_ended_ = true;
  reader_.end();
  process();
}

void LineSession::refuse_input() {
  reader_.clear();
  end_input();
}

void LineSession::process() {
  take_lines();
  if (!is_over() && !share_.hold(pool_->budget(), reader_.held_bytes())) give_up();
}

void LineSession::take_lines() {
  while (state_ == State::open && !output_.is_full()) {
    const LineReader::Next next = reader_.next();
    switch (next.kind) {
      case LineReader::Next::Kind::line:
        ++lines_;
        handler_->on_line(next.line);
        break;
      case LineReader::Next::Kind::too_long:
        ++lines_;
        handler_->on_long_line();
        break;
      case LineReader::Next::Kind::none:
        if (!input_ended_ || std::exchange(end_told_, true)) return;
        if (output_lost_) {
          give_up();
        } else {
          handler_->on_input_end();
        }
        return;
    }
  }
}

void LineSession::output_left() {
  if (output_.is_drained() && state_ == State::open) {
    handler_->on_drain();
    input_wanted();
  }
  if (state_ == State::closing && output_.empty()) give_up();
}

void LineSession::lose_output() {
  output_lost_ = true;
  output_.clear();
  if (end_told_) {
    give_up();
  } else {
    output_changed();
  }
}

void LineSession::give_up() {
  if (is_over()) return;
  state_ = State::doomed;
  output_.clear();
  output_changed();
}

void LineSession::tear_down() {
  if (std::exchange(state_, State::closed) == State::closed) return;
  const RefPtr<LineSession> keep(this);
  output_.clear();
  share_.release(pool_->budget());
  dropped();
  if (const std::unique_ptr<LineHandler> handler = std::move(handler_)) handler->on_close();
}

}  // namespace sluice
