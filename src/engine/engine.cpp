#include "engine/engine.hpp"

namespace sluice {

std::string_view to_string(Completion::Reason reason) {
  switch (reason) {
    case Completion::Reason::stop:
      return "stop";
    case Completion::Reason::length:
      return "length";
    case Completion::Reason::tool_calls:
      return "tool_calls";
    case Completion::Reason::cancelled:
      return "cancelled";
    case Completion::Reason::error:
      return "error";
  }
  return "error";
}

}  // namespace sluice
