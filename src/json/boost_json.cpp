// Boost.JSON is compiled here to replace one function, its hash of object keys.
//
// An object with more than 18 members is a hash table. Boost.JSON 1.81 hashes keys with FNV-1a and
// uses the table's address as salt. The last bits of the address are known, and its other bits do
// not affect which keys of the same length collide. An attacker could therefore choose 64 KiB of
// keys that all go into one bucket. A keyed hash prevents that.

#define BOOST_JSON_DETAIL_DIGEST_HPP  // replaces boost/json/detail/digest.hpp

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <boost/json/detail/config.hpp>

#include "core/crypto/random.hpp"
#include "core/crypto/siphash.hpp"

BOOST_JSON_NS_BEGIN
namespace detail {

/// The hash of the object key from `begin` to `end`. It uses a random key of this process instead
/// of the salt.
inline std::size_t digest(const char* begin, const char* end, std::size_t /*salt*/) noexcept {
  static const sluice::SipHashKey kKey = [] {
    sluice::SipHashKey key;
    sluice::random_bytes(std::as_writable_bytes(std::span(key)));
    return key;
  }();
  return sluice::siphash(kKey, std::string_view(begin, end));
}

/// The hash of a token of a JSON pointer. Its iterators decode the escapes.
template <class Iterator>
std::size_t digest(Iterator begin, Iterator end, std::size_t salt) noexcept {
  std::string text;
  for (; begin != end; ++begin) text.push_back(*begin);
  return digest(text.data(), text.data() + text.size(), salt);
}

}  // namespace detail
BOOST_JSON_NS_END

#include <boost/json/src.hpp>
