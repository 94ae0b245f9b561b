#include "net/connection/memory_connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice {

bool MemoryConnection::write(std::string_view bytes) {
  from_peer_.append(bytes);
  if (!is_over()) on_ready(kReadable);
  return from_peer_.empty() && is_open() && !is_output_full();
}

void MemoryConnection::end() {
  has_ended_ = true;
  if (!is_over()) on_ready(kReadable | kInputEnd);
}

std::string MemoryConnection::take(std::size_t most) {
  const RefPtr<MemoryConnection> keep(this);
  room_ = most;
  if (!is_over()) on_ready(kWritable);
  flush();
  room_ = 0;
  return std::exchange(to_peer_, {});
}

void MemoryConnection::vanish() {
  has_ended_ = true;
  has_gone_ = true;
  if (!is_over()) on_ready(kGone);
}

IoResult MemoryConnection::read_some(std::span<char> buffer) {
  if (from_peer_.empty()) return {has_ended_ ? IoStatus::closed : IoStatus::want_read, 0};
  const std::size_t size = std::min(buffer.size(), from_peer_.size());
  std::memcpy(buffer.data(), from_peer_.data(), size);
  from_peer_.erase(0, size);
  return {IoStatus::ok, size};
}

IoResult MemoryConnection::write_some(std::span<const iovec> parts) {
  if (has_gone_) return {IoStatus::failed, 0};
  std::size_t taken = 0;
  for (const iovec& part : parts) {
    const std::size_t size = std::min(part.iov_len, room_);
    to_peer_.append(static_cast<const char*>(part.iov_base), size);
    room_ -= size;
    taken += size;
    if (size < part.iov_len) return {IoStatus::want_write, taken};
  }
  return {IoStatus::ok, taken};
}

}  // namespace sluice
