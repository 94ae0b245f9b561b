#include "engine/llama/model/gguf_check.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ggml.h>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "json/json.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 20U;  // of metadata pairs and of tensors
constexpr std::uint64_t kMaxKey = 65535;
constexpr std::uint64_t kMaxTensorName = GGML_MAX_NAME - 1;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20U;

enum ValueType : std::uint32_t { kUint32 = 4, kString = 8, kArray = 9, kTypes = 13 };

/// Size of a value of each type, in bytes; 0 if the size varies.
constexpr std::array<std::uint64_t, kTypes> kValueSize = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// Thrown to stop reading; never leaves this file.
struct Fault {
  ModelFault fault;
  std::string message;
};

[[noreturn]] void corrupt(std::string message) {
  throw Fault{ModelFault::corrupt, "the model file is corrupt: " + std::move(message)};
}

std::string printable(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

/// In MiB, or for small files in bytes, so that two sizes that differ do not look the same.
std::string size_text(std::uint64_t bytes, bool in_mebibytes) {
  std::string out;
  append_number(out, in_mebibytes ? bytes >> 20U : bytes);
  if (!in_mebibytes) return out + " bytes";
  out += '.';
  append_number(out, ((bytes & 0xFFFFFU) * 10) >> 20U);
  return out + " MiB";
}

[[noreturn]] void truncated(std::uint64_t needs, std::uint64_t has) {
  const bool in_mebibytes = has >= (1U << 20U);
  throw Fault{ModelFault::truncated, "the model file is incomplete: it has " +
                                         size_text(has, in_mebibytes) + " and needs at least " +
                                         size_text(needs, in_mebibytes) +
                                         "; was its download interrupted?"};
}

/// Reads forward, up to the end of the file. Throws Fault if the file ends too early.
class Reader {
 public:
  Reader(std::istream& in, std::uint64_t size) : in_(in), size_(size) {}

  template <class T>
  T number() {
    T value;
    need(sizeof value);
    in_.read(reinterpret_cast<char*>(&value), sizeof value);
    advance(sizeof value);
    return value;
  }
  std::string string(std::uint64_t most, std::string_view what) {
    const auto length = number<std::uint64_t>();
    if (length > most) corrupt(std::string(what) + " is too long");
    need(length);
    std::string text(length, '\0');
    in_.read(text.data(), static_cast<std::streamsize>(length));
    advance(length);
    return text;
  }
  void skip(std::uint64_t bytes) {
    need(bytes);
    in_.ignore(static_cast<std::streamsize>(bytes));
    advance(bytes);
  }
  /// Refuses `count` items of at least `each` bytes if the file cannot contain them all.
  void expect(std::uint64_t count, std::uint64_t each) const {
    if (count > remaining() / each) truncated(saturated(count, each), size_);
  }
  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t remaining() const { return size_ - position_; }

 private:
  [[nodiscard]] std::uint64_t saturated(std::uint64_t count, std::uint64_t each) const {
    constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
    return count > (kMost - position_) / each ? kMost : position_ + count * each;
  }
  void need(std::uint64_t bytes) const {
    if (bytes > remaining()) truncated(saturated(bytes, 1), size_);
  }
  void advance(std::uint64_t bytes) {
    if (!in_) throw Fault{ModelFault::unreadable, "the model file cannot be read"};
    position_ += bytes;
  }

  std::istream& in_;
  const std::uint64_t size_;
  std::uint64_t position_ = 0;
};

void skip_strings(Reader& in, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) in.skip(in.number<std::uint64_t>());
}

void skip_value(Reader& in, std::uint32_t type, const std::string& key) {
  if (type == kString) {
    skip_strings(in, 1);
  } else if (type == kArray) {
    const auto element = in.number<std::uint32_t>();
    const auto count = in.number<std::uint64_t>();
    if (element >= kTypes || element == kArray)
      corrupt("the array " + key + " has an unknown type");
    in.expect(count, element == kString ? 8 : kValueSize[element]);
    if (element == kString) {
      skip_strings(in, count);
    } else {
      in.skip(count * kValueSize[element]);
    }
  } else if (type < kTypes) {
    in.skip(kValueSize[type]);
  } else {
    corrupt("the value " + key + " has an unknown type");
  }
}

/// Reads the next tensor's entry. Returns the end of its data, relative to the beginning of all
/// tensors' data.
std::uint64_t read_tensor(Reader& in, std::uint64_t alignment) {
  const std::string name = printable(in.string(kMaxTensorName, "a tensor's name"));
  const auto dimensions = in.number<std::uint32_t>();
  if (dimensions == 0 || dimensions > GGML_MAX_DIMS)
    corrupt("tensor " + name + " has invalid dimensions");
  std::array<std::uint64_t, GGML_MAX_DIMS> extents{1, 1, 1, 1};
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    extents[i] = in.number<std::uint64_t>();
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (extents[i] == 0 || extents[i] > kMost / elements)
      corrupt("tensor " + name + " has an invalid size");
    elements *= extents[i];
  }
  const auto type = in.number<std::uint32_t>();
  const auto offset = in.number<std::uint64_t>();
  if (type >= GGML_TYPE_COUNT || ggml_blck_size(static_cast<ggml_type>(type)) == 0) {
    throw Fault{ModelFault::unsupported, "tensor " + name + " has a type that is not supported"};
  }
  const auto block = static_cast<std::uint64_t>(ggml_blck_size(static_cast<ggml_type>(type)));
  const std::uint64_t block_bytes = ggml_type_size(static_cast<ggml_type>(type));
  if (extents[0] % block != 0) corrupt("tensor " + name + " has an invalid row length");
  if (offset % alignment != 0) corrupt("tensor " + name + " has an invalid offset");
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t blocks = elements / block;
  if (blocks > kMost / block_bytes || offset > kMost - blocks * block_bytes) {
    corrupt("tensor " + name + " has an invalid size");
  }
  return offset + blocks * block_bytes;
}

GgufSummary read_header(std::istream& file, std::uint64_t size) {
  Reader in(file, size);
  GgufSummary summary;
  std::array<char, 4> magic{};
  if (size >= magic.size()) {
    const auto bytes = in.number<std::uint32_t>();
    std::memcpy(magic.data(), &bytes, magic.size());
  }
  if (std::string_view(magic.data(), magic.size()) != "GGUF") {
    throw Fault{ModelFault::not_gguf,
                "this is not a GGUF file: it does not begin with \"GGUF\"; models for llama.cpp "
                "end in .gguf"};
  }
  summary.version = in.number<std::uint32_t>();
  if ((summary.version & 0xFFFFU) == 0) {
    throw Fault{ModelFault::unsupported,
                "this GGUF file was written for machines with a different byte order"};
  }
  if (summary.version != 2 && summary.version != 3) {
    std::string message = "GGUF version ";
    append_number(message, summary.version);
    throw Fault{ModelFault::unsupported, message + " is not supported; versions 2 and 3 are"};
  }
  summary.tensors = in.number<std::uint64_t>();
  const auto pairs = in.number<std::uint64_t>();
  if (summary.tensors > kMaxEntries || pairs > kMaxEntries)
    corrupt("it claims to have too many entries");
  in.expect(pairs, 8 + 4 + 1);

  std::uint64_t alignment = 32;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::string key = printable(in.string(kMaxKey, "a metadata key"));
    const auto type = in.number<std::uint32_t>();
    if (key == "general.alignment") {
      if (type != kUint32) corrupt("general.alignment is not a 32-bit number");
      alignment = in.number<std::uint32_t>();
      if (alignment == 0 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
        corrupt("general.alignment is not a power of two");
      }
    } else if (key == "general.architecture") {
      if (type != kString) corrupt("general.architecture is not a string");
      summary.architecture = printable(in.string(kMaxKey, "general.architecture"));
    } else {
      skip_value(in, type, key);
    }
  }
  if (summary.architecture.empty()) corrupt("it does not name an architecture");
  if (summary.tensors == 0) {
    throw Fault{ModelFault::unsupported, "this GGUF file contains no weights"};
  }

  in.expect(summary.tensors, 8 + 4 + 8 + 4 + 8);
  for (std::uint64_t i = 0; i < summary.tensors; ++i) {
    summary.tensor_bytes = std::max(summary.tensor_bytes, read_tensor(in, alignment));
  }
  const std::uint64_t start = (in.position() + alignment - 1) / alignment * alignment;
  if (start > size || summary.tensor_bytes > size - start) {
    truncated(start + summary.tensor_bytes, size);
  }
  return summary;
}

}  // namespace

std::string_view to_string(ModelFault fault) {
  switch (fault) {
    case ModelFault::none:
      return "none";
    case ModelFault::missing:
      return "missing";
    case ModelFault::unreadable:
      return "unreadable";
    case ModelFault::not_gguf:
      return "not_gguf";
    case ModelFault::unsupported:
      return "unsupported";
    case ModelFault::truncated:
      return "truncated";
    case ModelFault::corrupt:
      return "corrupt";
    case ModelFault::no_device:
      return "no_device";
    case ModelFault::no_memory:
      return "no_memory";
  }
  return "none";
}

Result<GgufSummary> check_gguf(std::istream& file, std::uint64_t size) {
  try {
    return read_header(file, size);
  } catch (Fault& fault) {
    return fail(static_cast<int>(fault.fault), std::move(fault.message));
  }
}

Result<GgufSummary> check_gguf_file(const std::string& path) {
  const auto refuse = [&](ModelFault fault, std::string_view why) {
    return fail(static_cast<int>(fault), path + ": " + std::string(why));
  };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return refuse(ModelFault::missing, "no such file");
  }
  if (error) return refuse(ModelFault::unreadable, error.message());
  if (std::filesystem::is_directory(status)) {
    return refuse(ModelFault::unreadable, "is a directory; name the .gguf file in it");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return refuse(ModelFault::unreadable, "is not a regular file");
  }
  const std::uint64_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    return refuse(ModelFault::unreadable,
                  error ? error.message() : std::generic_category().message(errno));
  }
  auto summary = check_gguf(file, size);
  if (!summary) summary.error().message.insert(0, path + ": ");
  return summary;
}

}  // namespace sluice
