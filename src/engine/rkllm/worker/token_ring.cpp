#include "engine/rkllm/worker/token_ring.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "net/http/status_codes.hpp"

namespace sluice::rkllm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kAlignment = 8;

/// What is in the memory before the bytes of a record.
struct Head {
  std::uint64_t run;
  CallState state;
  std::int32_t token_id;
  std::uint32_t kind;
  std::uint32_t columns;
  std::uint64_t size;  // of the bytes
};
static_assert(sizeof(Head) % kAlignment == 0);

constexpr std::uint64_t space_of(std::uint64_t size) {
  return sizeof(Head) + (size + kAlignment - 1) / kAlignment * kAlignment;
}

std::unexpected<Error> refused(const char* what) {
  return fail(kInternalServerError, std::string(what) + ": " + std::strerror(errno));
}

void signal(const Descriptor& event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof one);
}

void clear(const Descriptor& event) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event.get(), &count, sizeof count);
}

}  // namespace

/// The first page. Both count bytes from the beginning, so that they never fall.
struct TokenRing::Shared {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::atomic<std::uint32_t> reader_rests;
  std::atomic<std::uint32_t> writer_waits;
};

TokenRing::TokenRing(Files files, void* memory, std::size_t capacity)
    : files_(std::move(files)), memory_(memory), capacity_(capacity) {}

TokenRing::TokenRing(TokenRing&& other) noexcept
    : files_(std::move(other.files_)),
      memory_(std::exchange(other.memory_, nullptr)),
      capacity_(other.capacity_),
      at_(other.at_),
      taken_(std::move(other.taken_)) {}

TokenRing::~TokenRing() {
  if (memory_ != nullptr) ::munmap(memory_, kPage + capacity_);
}

TokenRing::Shared& TokenRing::shared() const {
  static_assert(sizeof(Shared) <= kPage && std::atomic<std::uint64_t>::is_always_lock_free);
  return *std::launder(static_cast<Shared*>(memory_));
}

Result<TokenRing> TokenRing::make(std::size_t bytes) {
  Files files{.memory = Descriptor(::memfd_create("tokens", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
              .filled = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
              .drained = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
  if (!files.memory || !files.filled || !files.drained) {
    return refused("Cannot share memory with another process");
  }
  const std::size_t capacity = std::bit_ceil(std::max(bytes, kPage));
  // Whoever shrinks a file takes its pages away from everybody.
  if (::ftruncate(files.memory.get(), static_cast<off_t>(kPage + capacity)) != 0 ||
      ::fcntl(files.memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return refused("Cannot share memory with another process");
  }
  return attach(std::move(files));
}

Result<TokenRing> TokenRing::attach(Files files) {
  struct stat about{};
  if (::fstat(files.memory.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return fail(kUnprocessableContent, "There is no memory to share");
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size < 2 * kPage || !std::has_single_bit(size - kPage)) {
    return fail(kUnprocessableContent, "The memory to share has another size");
  }
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, files.memory.get(), 0);
  if (memory == MAP_FAILED) return refused("Cannot share memory with another process");
  return TokenRing(std::move(files), memory, size - kPage);
}

void TokenRing::copy_in(std::uint64_t at, std::span<const std::byte> bytes) const {
  if (bytes.empty()) return;
  auto* const records = static_cast<std::byte*>(memory_) + kPage;
  const std::size_t from = at & (capacity_ - 1);
  const std::size_t first = std::min(bytes.size(), capacity_ - from);
  std::memcpy(records + from, bytes.data(), first);
  std::memcpy(records, bytes.data() + first, bytes.size() - first);
}

void TokenRing::copy_out(std::uint64_t at, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  const auto* const records = static_cast<const std::byte*>(memory_) + kPage;
  const std::size_t from = at & (capacity_ - 1);
  const std::size_t first = std::min(bytes.size(), capacity_ - from);
  std::memcpy(bytes.data(), records + from, first);
  std::memcpy(bytes.data() + first, records, bytes.size() - first);
}

bool TokenRing::can_hold(const TokenRecord& record) const {
  return space_of(record.bytes.size()) <= capacity_;
}

bool TokenRing::write(const TokenRecord& record) {
  const std::uint64_t space = space_of(record.bytes.size());
  const auto has_room = [&] {
    return space <= capacity_ - (at_ - shared().read.load(std::memory_order_seq_cst));
  };
  if (!can_hold(record)) return false;
  if (!has_room()) {
    shared().writer_waits.store(1, std::memory_order_seq_cst);
    if (!has_room()) return false;
  }
  const Head head{.run = record.run,
                  .state = record.state,
                  .token_id = record.token_id,
                  .kind = static_cast<std::uint32_t>(record.kind),
                  .columns = record.columns,
                  .size = record.bytes.size()};
  copy_in(at_, std::as_bytes(std::span(&head, 1)));
  copy_in(at_ + sizeof head, std::as_bytes(std::span(record.bytes)));
  at_ += space;
  shared().written.store(at_, std::memory_order_seq_cst);
  if (shared().reader_rests.exchange(0, std::memory_order_seq_cst) != 0) signal(files_.filled);
  return true;
}

void TokenRing::wait_for_room() const {
  pollfd room{.fd = files_.drained.get(), .events = POLLIN, .revents = 0};
  while (::poll(&room, 1, -1) < 0 && errno == EINTR) {
  }
  clear(files_.drained);
}

Result<std::optional<TokenRecord>> TokenRing::read() {
  const std::uint64_t held = shared().written.load(std::memory_order_acquire) - at_;
  if (held == 0) return std::nullopt;
  Head head{};
  const auto damaged = [] {
    return fail(kInternalServerError, "it has damaged the memory that it shares");
  };
  if (held > capacity_ || held < sizeof head) return damaged();
  copy_out(at_, std::as_writable_bytes(std::span(&head, 1)));
  const bool is_right = head.size <= held - sizeof head && space_of(head.size) <= held &&
                        head.kind <= static_cast<std::uint32_t>(TokenRecord::Kind::figures);
  if (!is_right) return damaged();
  taken_.resize(head.size);
  copy_out(at_ + sizeof head, taken_);
  at_ += space_of(head.size);
  shared().read.store(at_, std::memory_order_seq_cst);
  if (shared().writer_waits.exchange(0, std::memory_order_seq_cst) != 0) signal(files_.drained);
  return TokenRecord{.run = head.run,
                     .state = head.state,
                     .token_id = head.token_id,
                     .kind = static_cast<TokenRecord::Kind>(head.kind),
                     .columns = head.columns,
                     .bytes = {reinterpret_cast<const char*>(taken_.data()), taken_.size()}};
}

void TokenRing::clear_filled() const {
  clear(files_.filled);
}

bool TokenRing::may_rest() {
  shared().reader_rests.store(1, std::memory_order_seq_cst);
  if (shared().written.load(std::memory_order_seq_cst) == at_) return true;
  shared().reader_rests.store(0, std::memory_order_seq_cst);
  return false;
}

}  // namespace sluice::rkllm
