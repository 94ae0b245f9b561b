#include "cli/agent/agent_trace.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "cli/options/config_file.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {

TraceWriter::~TraceWriter() {
  if (fd_ < 0) return;
  struct stat own{};
  struct stat there{};
  // Of a run that could not begin, nothing is in the way of another try.
  const bool is_there = ::fstat(fd_, &own) == 0 && ::stat(path_.c_str(), &there) == 0 &&
                        own.st_dev == there.st_dev && own.st_ino == there.st_ino;
  close(fd_);
  if (!has_begun_ && is_there) ::unlink(path_.c_str());
}

Result<void> TraceWriter::open(const std::string& path) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ >= 0) return {};
  return fail(kExitFailure, "--trace: " + path + ": " + std::strerror(errno));
}

Result<void> TraceWriter::write(const json::object& event, TimePoint now) {
  if (!std::exchange(has_begun_, true)) began_ = now;
  const auto at = std::chrono::duration_cast<std::chrono::microseconds>(now - began_).count();
  return write_all(fd_, to_json(json::object{{"at_us", at}, {"event", event}}) + "\n");
}

Result<std::vector<TracedEvent>> read_trace(const std::string& path) {
  const auto text = read_small_file(path, kMaxTrace);
  if (!text) return std::unexpected(text.error());
  std::vector<TracedEvent> out;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const auto wrong = [&](std::string_view why) {
      return fail(kExitUsage,
                  path + ":" + std::to_string(out.size() + 1) + ": " + std::string(why));
    };
    auto parsed = parse_json(line);
    // Whoever wrote the last line may have been killed in the middle of it.
    if (!parsed && end == std::string_view::npos && !out.empty()) break;
    if (!parsed) return wrong(parsed.error().message);
    json::object* const object = parsed->if_object();
    const json::value* const at = object == nullptr ? nullptr : object->if_contains("at_us");
    const json::object* const event = object == nullptr ? nullptr : object_at(*object, "event");
    if (at == nullptr || !at->is_int64() || at->get_int64() < 0 || event == nullptr) {
      return wrong("this is no line of a trace; `sluice agent --trace` writes them");
    }
    out.push_back(
        {.at = at_most_forever(std::chrono::microseconds(at->get_int64())), .event = *event});
  }
  return out;
}

}  // namespace sluice
