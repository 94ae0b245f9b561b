#include "cli/content/saved_files.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/text.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

constexpr mode_t kMode = 0666;  // less the umask

}  // namespace

Result<bool> save_if_new(const std::string& path, std::string_view bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!file) {
    if (errno == EEXIST) return false;
    return fail(kExitFailure,
                "cannot save " + path + ": " + std::generic_category().message(errno));
  }
  if (auto written = write_all(file.get(), bytes); !written) {
    ::unlink(path.c_str());
    return fail(written.error().code, path + ": " + written.error().message);
  }
  return true;
}

std::string_view file_ending(std::string_view mime_type) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kEndings = {
      {{"image/png", "png"},       {"image/jpeg", "jpg"},      {"image/gif", "gif"},
       {"image/webp", "webp"},     {"image/avif", "avif"},     {"image/bmp", "bmp"},
       {"image/tiff", "tiff"},     {"image/svg+xml", "svg"},   {"audio/wav", "wav"},
       {"audio/x-wav", "wav"},     {"audio/mpeg", "mp3"},      {"audio/ogg", "ogg"},
       {"audio/flac", "flac"},     {"audio/aac", "aac"},       {"audio/webm", "webm"},
       {"video/mp4", "mp4"},       {"video/webm", "webm"},     {"application/pdf", "pdf"},
       {"application/zip", "zip"}, {"application/gzip", "gz"}, {"application/json", "json"},
       {"text/plain", "txt"},      {"text/csv", "csv"},        {"text/markdown", "md"}}};
  const std::string type = to_lower(trim(mime_type.substr(0, mime_type.find(';'))));
  for (const auto& [known, ending] : kEndings) {
    if (type == known) return ending;
  }
  return "bin";
}

Result<std::string> save_new_file(const std::string& folder, std::string_view kind,
                                  std::string_view mime_type, std::string_view bytes) {
  std::string start = folder.empty() || folder.ends_with('/') ? folder : folder + "/";
  start.append(kind);
  const std::string ending = "." + std::string(file_ending(mime_type));
  for (int number = 0; number < kMaxSameName; ++number) {
    const std::string path = start + (number == 0 ? "" : "-" + std::to_string(number)) + ending;
    const Result<bool> saved = save_if_new(path, bytes);
    if (!saved) return std::unexpected(saved.error());
    if (*saved) return path;
  }
  return fail(kExitFailure, "there are too many files " + start + "-N" + ending);
}

}  // namespace sluice
