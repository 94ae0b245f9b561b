#include "engine/rkllm/runtime/library_file.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "core/text/text.hpp"
#include "net/http/status_codes.hpp"

namespace sluice::rkllm {
namespace {

constexpr std::string_view kName = "librkllmrt.so";
/// Releases have up to 8 MB.
constexpr std::size_t kLargest = std::size_t{256} << 20U;
/// As in "rkllm-runtime version: 1.2.3, rknpu driver version: 0.9.8", which the runtime logs.
constexpr std::string_view kMark = "rkllm-runtime version";

constexpr std::array<std::string_view, 5> kSystemFolders = {
    "/usr/local/lib", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/lib", "/vendor/lib64"};

constexpr int kOwnMachine =
#if defined(__aarch64__)
    EM_AARCH64;
#else
    EM_X86_64;
#endif

/// The version that `text` begins with, such as "1.2.3" or "1.2.1b1"; empty: none.
std::string_view leading_version(std::string_view text) {
  std::size_t end = 0;
  int dots = 0;
  while (end < text.size() && (is_digit(text[end]) || is_letter(text[end]) || text[end] == '.')) {
    const bool is_dot = text[end] == '.';
    if (is_dot && (end == 0 || !is_digit(text[end - 1]) || ++dots > 2)) break;
    if (is_letter(text[end]) && dots < 2) return {};
    ++end;
  }
  return dots == 2 && text[end - 1] != '.' ? text.substr(0, end) : std::string_view();
}

Result<std::string> read_library(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) {
    return fail(kNotFound, path + ": there is no such file");
  }
  if (error) return fail(kForbidden, path + " cannot be read: " + error.message());
  if (size > kLargest) return fail(kUnprocessableContent, path + " is too large for a runtime");
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return fail(kForbidden, path + " cannot be read");
  }
  return bytes;
}

Result<void> check_elf(std::string_view bytes, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return fail(kUnprocessableContent, path + " " + why);
  };
  if (bytes.size() < sizeof(Elf64_Ehdr) || !bytes.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    return refuse("is no shared library");
  }
  if (bytes[EI_CLASS] != ELFCLASS64) {
    return refuse("is a runtime of 32 bits, whose interface is another; use the one for aarch64");
  }
  Elf64_Ehdr head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.e_type != ET_DYN) return refuse("is no shared library");
  if (head.e_machine != kOwnMachine) return refuse("is for another processor than this one");
  return {};
}

}  // namespace

std::vector<std::string> library_places(std::string_view library_path) {
  std::vector<std::string> places;
  const auto add = [&](std::string_view folder) {
    if (!folder.empty()) places.push_back(std::string(folder) + "/" + std::string(kName));
  };
  for (std::string_view rest = library_path; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    add(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string_view folder : kSystemFolders) add(folder);
  return places;
}

std::optional<std::string> find_library(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(place, ignored)) return place;
  }
  return std::nullopt;
}

std::string version_in(std::string_view bytes) {
  std::set<std::string_view> named;
  bool is_runtime = false;
  for (std::size_t at = bytes.find(kMark); at != std::string_view::npos;
       at = bytes.find(kMark, at + 1)) {
    is_runtime = true;
    std::string_view rest = bytes.substr(at + kMark.size());
    while (rest.starts_with(':') || rest.starts_with(' ')) rest.remove_prefix(1);
    if (const std::string_view version = leading_version(rest); !version.empty()) {
      named.insert(version);
    }
  }
  if (is_runtime && named.empty()) {
    // The text may be put together when it is logged. The version then stands by itself.
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
      const std::string_view text = bytes.substr(at, end - at);
      if (!text.empty() && leading_version(text) == text && text.starts_with("1.")) {
        named.insert(text);
      }
      at = end + 1;
    }
  }
  return named.size() == 1 ? std::string(*named.begin()) : std::string();
}

Result<LibraryFacts> inspect_library(const std::string& path) {
  const Result<std::string> bytes = read_library(path);
  if (!bytes) return std::unexpected(bytes.error());
  if (Result<void> checked = check_elf(*bytes, path); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  LibraryFacts facts{.path = path, .version = version_in(*bytes)};
  facts.abi = abi_of_version(facts.version);
  return facts;
}

Result<LibraryFacts> find_runtime(const std::string& path, const std::string& abi) {
  const AbiFacts* const named = abi.empty() ? nullptr : find_abi(abi);
  if (!abi.empty() && named == nullptr) {
    return fail(kUnprocessableContent, "There is no ABI " + abi);
  }
  std::optional<std::string> place = path;
  if (path.empty()) {
    const char* const folders = std::getenv("LD_LIBRARY_PATH");
    place = find_library(library_places(folders == nullptr ? "" : folders));
    if (!place) {
      return fail(kNotFound,
                  "There is no librkllmrt.so where libraries are; give its path with "
                  "--rkllm-library");
    }
  }
  Result<LibraryFacts> library = inspect_library(*place);
  if (!library) return library;
  if (named != nullptr) library->abi = named;
  if (library->abi == nullptr && !library->version.empty()) {
    std::string known;
    for (const AbiFacts& each : all_abis()) {
      known.append(known.empty() ? "" : ", ").append(each.versions);
    }
    return fail(kUnprocessableContent, library->path + " has version " + library->version +
                                           ", which is not known here; known are " + known);
  }
  return library;
}

}  // namespace sluice::rkllm
