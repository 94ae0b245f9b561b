#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

static_assert(std::endian::native == std::endian::little, "GGUF as written here is little-endian");

/// Writes a GGUF file, version 3 (ggml's gguf.h describes the format), with tensors of 32-bit
/// floats. That is enough for the models that tests make. Add the metadata first, then the tensors,
/// then call write(). Not thread-safe.
class GgufWriter {
 public:
  void add(std::string_view key, std::uint32_t value) {
    begin(key, 4);
    append(metadata_, value);
  }
  void add(std::string_view key, float value) {
    begin(key, 6);
    append(metadata_, value);
  }
  void add(std::string_view key, bool value) {
    begin(key, 7);
    append(metadata_, static_cast<std::uint8_t>(value));
  }
  void add(std::string_view key, std::string_view value) {
    begin(key, 8);
    append_string(metadata_, value);
  }
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const std::string& value : values) append_string(metadata_, value);
  }
  void add(std::string_view key, const std::vector<float>& values) {
    begin_array(key, 6, values.size());
    for (const float value : values) append(metadata_, value);
  }
  void add(std::string_view key, const std::vector<std::int32_t>& values) {
    begin_array(key, 5, values.size());
    for (const std::int32_t value : values) append(metadata_, value);
  }

  /// Adds a tensor of `shape` (fastest dimension first) with these values, or with zeros if there
  /// are none. Zeros take no time and, on most file systems, no space.
  void add_tensor(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values) {
    std::uint64_t count = 1;
    for (const std::uint64_t extent : shape) count *= extent;
    tensors_.push_back({std::move(name), std::move(shape), std::move(values), count * 4});
  }

  /// Writes the whole file to `out`, a binary stream, and seeks over long runs of zeros. The caller
  /// must check the stream afterwards.
  void write(std::ostream& out) const {
    std::string head = "GGUF";
    append(head, std::uint32_t{3});
    append(head, static_cast<std::uint64_t>(tensors_.size()));
    append(head, pairs_);
    head += metadata_;
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      append_string(head, tensor.name);
      append(head, static_cast<std::uint32_t>(tensor.shape.size()));
      for (const std::uint64_t extent : tensor.shape) append(head, extent);
      append(head, std::uint32_t{0});  // GGML_TYPE_F32
      append(head, offset);
      offset += aligned(tensor.bytes);
    }
    head.resize(aligned(head.size()), '\0');
    out.write(head.data(), static_cast<std::streamsize>(head.size()));
    for (const Tensor& tensor : tensors_) {
      const std::uint64_t written = tensor.values.size() * sizeof(float);
      out.write(reinterpret_cast<const char*>(tensor.values.data()),
                static_cast<std::streamsize>(written));
      write_zeros(out, aligned(tensor.bytes) - written);
    }
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
    std::uint64_t bytes;
  };

  static std::uint64_t aligned(std::uint64_t size) { return (size + 31) / 32 * 32; }

  static void write_zeros(std::ostream& out, std::uint64_t count) {
    constexpr std::uint64_t kPage = 4096;
    if (count > kPage) {
      out.seekp(static_cast<std::streamoff>(count - kPage), std::ios::cur);
      count = kPage;
    }
    out << std::string(count, '\0');
  }

  template <class T>
  static void append(std::string& out, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof bytes);
  }
  static void append_string(std::string& out, std::string_view text) {
    append(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  }
  void begin(std::string_view key, std::uint32_t type) {
    append_string(metadata_, key);
    append(metadata_, type);
    ++pairs_;
  }
  void begin_array(std::string_view key, std::uint32_t type, std::size_t count) {
    begin(key, 9);
    append(metadata_, type);
    append(metadata_, static_cast<std::uint64_t>(count));
  }

  std::string metadata_;
  std::uint64_t pairs_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace sluice
