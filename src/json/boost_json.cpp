// Boost.JSON, compiled here for the sake of one function.
//
// An object with more than 18 members is a hash table. Boost.JSON 1.81 hashes keys with FNV-1a,
// salted with the table's address, whose last bits are known and whose others change nothing about
// which keys of one length collide: 64 KiB of keys chosen so would all go into one bucket. Hence a
// hash with a key.

#define BOOST_JSON_DETAIL_DIGEST_HPP  // in place of boost/json/detail/digest.hpp

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <boost/json/detail/config.hpp>

#include "core/crypto/random.hpp"
#include "core/crypto/siphash.hpp"

BOOST_JSON_NS_BEGIN
namespace detail {

/// The hash of the key from `begin` to `end`. It depends on a key of this process instead of a
/// salt.
inline std::size_t digest(const char* begin, const char* end, std::size_t /*salt*/) noexcept {
  static const sluice::SipHashKey kKey = [] {
    sluice::SipHashKey key;
    sluice::random_bytes(std::as_writable_bytes(std::span(key)));
    return key;
  }();
  return sluice::siphash(kKey, std::string_view(begin, end));
}

/// The same for a token of a JSON pointer, whose escapes its iterators undo.
template <class Iterator>
std::size_t digest(Iterator begin, Iterator end, std::size_t salt) noexcept {
  std::string text;
  for (; begin != end; ++begin) text.push_back(*begin);
  return digest(text.data(), text.data() + text.size(), salt);
}

}  // namespace detail
BOOST_JSON_NS_END

#include <boost/json/src.hpp>
