#include "net/memory_lines.hpp"

#include <array>
#include <sys/uio.h>

namespace sluice {

RefPtr<MemoryLines> MemoryLines::connect(LineService& service, uid_t user, Executor& executor,
                                         BufferPool& pool, const LineOptions& options) {
  RefPtr<MemoryLines> lines(new MemoryLines(executor, pool, options));
  lines->open(service.open(lines, user));
  return lines;
}

bool MemoryLines::write(std::string_view bytes) {
  if (is_open()) feed(bytes);
  return wants_input();
}

std::string MemoryLines::take() {
  std::string taken;
  while (!output().empty()) {
    std::array<iovec, 16> parts;
    std::size_t size = 0;
    const std::size_t count = output().gather(parts, size);
    for (std::size_t i = 0; i < count; ++i) {
      taken.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    }
    output().consume(size);
  }
  output_left();
  return taken;
}

void MemoryLines::output_changed() {
  if (!is_doomed()) return;
  executor_->post([self = RefPtr<MemoryLines>(this)] { self->tear_down(); });
}

void MemoryLines::input_wanted() {
  executor_->post([self = RefPtr<MemoryLines>(this)] { self->process(); });
}

}  // namespace sluice
