#include "engine/methods/numbers_parameter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/text/base64.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

static_assert(std::endian::native == std::endian::little, "arrays in Base64 are little-endian");

template <class Number>
Result<std::vector<Number>> numbers_parameter(const json::object& params, std::string_view name,
                                              std::size_t& bytes_left, std::size_t most) {
  const auto refuse = [&] {
    return fail(kInvalidParams,
                "Invalid params: " + std::string(name) +
                    " must be an array of numbers, or their bytes in Base64, little-endian and "
                    "four for each; all arrays together must be at most " +
                    std::to_string(most) + " bytes");
  };
  const json::value* const given = find_parameter(params, name);
  std::vector<Number> out;
  if (given == nullptr) return refuse();
  if (given->is_string()) {
    const std::string_view text = given->get_string();
    if (text.size() / 4 * 3 > bytes_left + 2) return refuse();
    const std::optional<std::string> bytes = decode_base64(text);
    if (!bytes || bytes->size() % sizeof(Number) != 0 || bytes->size() > bytes_left) {
      return refuse();
    }
    out.resize(bytes->size() / sizeof(Number));
    if (!out.empty()) std::memcpy(out.data(), bytes->data(), bytes->size());
  } else if (given->is_array()) {
    const json::array& array = given->get_array();
    if (array.size() > bytes_left / sizeof(Number)) return refuse();
    out.reserve(array.size());
    for (const json::value& each : array) {
      if constexpr (std::is_integral_v<Number>) {
        const std::optional<std::int64_t> number = integer_of(each);
        if (!number || !std::in_range<Number>(*number)) return refuse();
        out.push_back(static_cast<Number>(*number));
      } else {
        constexpr double kLargest = static_cast<double>(std::numeric_limits<float>::max());
        // Its shortest text is a little above it, and the nearest float up to here.
        constexpr double kTooLarge = 0x1.ffffffp127;
        const double number =
            each.is_number() ? each.to_number<double>() : std::numeric_limits<double>::infinity();
        if (!(std::abs(number) < kTooLarge)) return refuse();
        out.push_back(static_cast<Number>(std::clamp(number, -kLargest, kLargest)));
      }
    }
  } else {
    return refuse();
  }
  bytes_left -= out.size() * sizeof(Number);
  return out;
}

template Result<std::vector<float>> numbers_parameter(const json::object&, std::string_view,
                                                      std::size_t&, std::size_t);
template Result<std::vector<std::int32_t>> numbers_parameter(const json::object&, std::string_view,
                                                             std::size_t&, std::size_t);

}  // namespace sluice
