#include "engine/chat/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/text/utf8.hpp"
#include "json/members.hpp"
#include "json/parser.hpp"

namespace sluice {
namespace {

/// Of a JSON file. The largest vocabularies have half as many.
constexpr std::size_t kMaxValues = 4'000'000;

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::size_t most) {
  const FileFaults fault(path);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fail(kNotFound, "There is no " + path);
  if (!std::filesystem::is_regular_file(status)) return fault("is no file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fault.of(kForbidden, std::string("cannot be read: ") + std::strerror(errno));
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fault.of(kForbidden, "cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most) {
    return fault.of(kContentTooLarge, "is longer than " + std::to_string(most >> 20U) + " MiB");
  }
  if (!is_valid_utf8(text)) return fault("is no text in UTF-8");
  text.shrink_to_fit();
  return text;
}

Result<json::object> read_json_file(const std::string& path, std::size_t most) {
  Result<std::string> text = read_text_file(path, most);
  if (!text) return std::unexpected(std::move(text.error()));
  const FileFaults fault(path);
  auto parsed = JsonParser().parse(*text, {}, kMaxValues);
  if (!parsed) {
    return fault("is no JSON: " + parsed.error().reason + " at byte " +
                 std::to_string(parsed.error().at));
  }
  if (!parsed->is_object()) return fault("is no JSON object");
  return std::move(parsed->get_object());
}

/// A token: its text, or an object with it. Empty: it is neither, or null.
std::string token_text(const json::value* value) {
  if (value == nullptr) return {};
  if (const json::object* const object = value->if_object()) {
    return std::string(text_at(*object, "content"));
  }
  return value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace sluice
