#include "json_schema/formats/uri.hpp"

#include <cstddef>

namespace sluice {
namespace {

bool is_scheme(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kRest =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
  return !text.empty() && kLetters.contains(text.front()) &&
         text.find_first_not_of(kRest) == std::string_view::npos;
}

/// RFC 3986 section 5.2.4.
std::string remove_dot_segments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    if (path.starts_with("../")) {
      path.remove_prefix(3);
    } else if (path.starts_with("./") || path.starts_with("/./")) {
      path.remove_prefix(2);
    } else if (path == "/.") {
      path = "/";
    } else if (path.starts_with("/../") || path == "/..") {
      path = path == "/.." ? "/" : path.substr(3);
      const std::size_t slash = out.rfind('/');
      out.erase(slash == std::string::npos ? 0 : slash);
    } else if (path == "." || path == "..") {
      break;
    } else {
      const std::size_t end = path.find('/', 1);
      out.append(path.substr(0, end));
      path.remove_prefix(end == std::string_view::npos ? path.size() : end);
    }
  }
  return out;
}

/// RFC 3986 section 5.2.3.
std::string merge_paths(const UriParts& base, std::string_view path) {
  std::string out;
  if (base.authority && base.path.empty()) {
    out = "/";
  } else if (const std::size_t slash = base.path.rfind('/'); slash != std::string_view::npos) {
    out = base.path.substr(0, slash + 1);
  }
  out.append(path);
  return out;
}

std::string to_text(const UriParts& parts) {
  std::string out;
  if (parts.scheme) out.append(*parts.scheme).append(":");
  if (parts.authority) out.append("//").append(*parts.authority);
  out.append(parts.path);
  if (parts.query) out.append("?").append(*parts.query);
  if (parts.fragment) out.append("#").append(*parts.fragment);
  return out;
}

}  // namespace

UriParts split_uri(std::string_view text) {
  UriParts parts;
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
    parts.fragment = text.substr(hash + 1);
    text = text.substr(0, hash);
  }
  if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
    parts.query = text.substr(mark + 1);
    text = text.substr(0, mark);
  }
  if (const std::size_t colon = text.find(':');
      colon != std::string_view::npos && is_scheme(text.substr(0, colon))) {
    parts.scheme = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    const std::size_t slash = text.find('/');
    parts.authority = text.substr(0, slash);
    text.remove_prefix(parts.authority->size());
  }
  parts.path = text;
  return parts;
}

std::string resolve_uri(std::string_view base, std::string_view reference) {
  if (base.empty()) return std::string(reference);
  const UriParts from = split_uri(base);
  UriParts target = split_uri(reference);
  std::string path;
  // NOLINTNEXTLINE(bugprone-branch-clone): keeps the order of RFC 3986, section 5.2.2
  if (target.scheme || target.authority) {
    path = remove_dot_segments(target.path);
  } else if (target.path.empty()) {
    path = from.path;
    if (!target.query) target.query = from.query;
  } else if (target.path.starts_with('/')) {
    path = remove_dot_segments(target.path);
  } else {
    path = remove_dot_segments(merge_paths(from, target.path));
  }
  if (!target.scheme) {
    target.scheme = from.scheme;
    if (!target.authority) target.authority = from.authority;
  }
  target.path = path;
  return to_text(target);
}

}  // namespace sluice
