#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// Why a model cannot be used. It is the `code` of the Error whose message explains it.
enum class ModelFault : std::uint8_t {
  none,
  missing,      // no such file
  unreadable,   // a directory, no permission, an I/O error
  not_gguf,     // not a GGUF file
  unsupported,  // a GGUF version, byte order, architecture or kind of model that cannot run here
  truncated,    // shorter than its own header says
  corrupt,      // its contents are inconsistent
  no_device,    // the requested backend does not exist
  no_memory,    // not enough memory for the weights or the context
};

/// "missing", "not_gguf", ...
std::string_view to_string(ModelFault fault);

}  // namespace sluice
