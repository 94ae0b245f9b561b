#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "json/json.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {

/// What is wrong with a file, or with what it has.
class FileFaults {
 public:
  explicit FileFaults(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] std::unexpected<Error> operator()(std::string_view what) const {
    return of(kUnprocessableContent, what);
  }
  [[nodiscard]] std::unexpected<Error> of(int code, std::string_view what) const {
    return fail(code, path_ + " " + std::string(what));
  }

 private:
  std::string path_;
};

/// Reads a file of UTF-8. Errors name the file: 404, it is not there; 403, it cannot be read; 413,
/// it has more bytes than `most`, whole MiB; 422, it is no text.
Result<std::string> read_text_file(const std::string& path, std::size_t most);

/// Reads a file of a JSON object. Errors: those above; 422, it is something else.
Result<json::object> read_json_file(const std::string& path, std::size_t most);

/// A token in the files of a tokenizer: its text, or an object with it. Empty: it is neither, or
/// null.
std::string token_text(const json::value* value);

}  // namespace sluice
