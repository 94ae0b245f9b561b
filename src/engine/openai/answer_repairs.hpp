#pragma once

#include <cstdint>
#include <string>

namespace sluice {

/// What a server of models leaves out of its stream, or sends against its API, and a decoder has
/// made up for.
enum class Repair : std::uint8_t {
  call_index,      // missing, or the same for two calls
  call_id,         // missing, too long, or the same for two calls
  call_name,       // repeated in each piece of a call
  call_arguments,  // no JSON object
  call_item,       // pieces or the end of a call that was not announced, or do not say of which
  finish_reason,   // missing, or not the real one
  text,            // what was not streamed is only in the last event
};

/// A set of repairs.
class AnswerRepairs {
 public:
  void add(Repair repair) { bits_ |= 1U << static_cast<unsigned>(repair); }
  void add(AnswerRepairs others) { bits_ |= others.bits_; }
  [[nodiscard]] bool has(Repair repair) const {
    return (bits_ >> static_cast<unsigned>(repair) & 1U) != 0;
  }
  [[nodiscard]] AnswerRepairs without(AnswerRepairs others) const {
    AnswerRepairs rest;
    rest.bits_ = bits_ & ~others.bits_;
    return rest;
  }
  [[nodiscard]] bool empty() const { return bits_ == 0; }
  /// What was wrong, for the log: "calls without an index, ...".
  [[nodiscard]] std::string to_string() const;

  bool operator==(const AnswerRepairs&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace sluice
