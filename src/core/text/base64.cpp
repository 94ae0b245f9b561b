#include "core/text/base64.hpp"

#include <algorithm>
#include <openssl/evp.h>

namespace sluice {
namespace {

// Both sizes are whole groups, so that pieces join without padding between them, and are far below
// the largest int.
constexpr std::size_t kPieceBytes = std::size_t{48} << 10U;
constexpr std::size_t kPieceText = kPieceBytes / 3 * 4;

const unsigned char* unsigned_data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  std::size_t at = out.size();
  out.resize(at + (bytes.size() + 2) / 3 * 4 + 1);  // the encoder appends a zero byte
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    at += static_cast<std::size_t>(
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data() + at), unsigned_data(piece),
                        static_cast<int>(piece.size())));
  }
  out.resize(at);
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  // Checked here because the decoder ignores spaces at the ends and padding anywhere.
  const std::string_view digits = text.substr(0, text.size() - padding);
  const bool plain = std::ranges::all_of(digits, [](unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  });
  if (!plain) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  std::size_t at = 0;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, kPieceText);
    text.remove_prefix(piece.size());
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data() + at),
                                     unsigned_data(piece), static_cast<int>(piece.size()));
    if (size < 0) return std::nullopt;
    at += static_cast<std::size_t>(size);
  }
  // The bits beyond the end must be zero, so that only one text encodes given bytes (section 3.5).
  if (std::ranges::any_of(std::string_view(out).substr(at - padding, padding),
                          [](char c) { return c != '\0'; })) {
    return std::nullopt;
  }
  out.resize(at - padding);
  return out;
}

void append_base64url(std::string& out, std::string_view bytes) {
  const std::size_t at = out.size();
  append_base64(out, bytes);
  out.resize(out.size() - (3 - bytes.size() % 3) % 3);
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), '+', '-');
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), '/', '_');
}

std::string to_base64url(std::string_view bytes) {
  std::string out;
  append_base64url(out, bytes);
  return out;
}

std::optional<std::string> decode_base64url(std::string_view text) {
  if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain.append((4 - plain.size() % 4) % 4, '=');
  return decode_base64(plain);
}

}  // namespace sluice
