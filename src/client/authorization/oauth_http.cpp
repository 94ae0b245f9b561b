#include "client/authorization/oauth_http.hpp"

#include <algorithm>
#include <optional>

#include "core/text/percent_encoding.hpp"

namespace sluice {

std::string to_form(const FormFields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    if (!out.empty()) out.push_back('&');
    append_query_encoded(out, name);
    out.push_back('=');
    append_query_encoded(out, value);
  }
  return out;
}

FormFields parse_form(std::string_view text) {
  constexpr std::size_t kMaxFields = 64;
  FormFields out;
  while (!text.empty() && out.size() < kMaxFields) {
    const std::string_view field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(field.size() + 1, text.size()));
    const std::size_t equals = std::min(field.find('='), field.size());
    std::optional<std::string> name = form_decode(field.substr(0, equals));
    std::optional<std::string> value =
        form_decode(field.substr(std::min(equals + 1, field.size())));
    if (name && value && !field.empty()) out.emplace_back(*std::move(name), *std::move(value));
  }
  return out;
}

std::string_view field_of(const FormFields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &FormFields::value_type::first);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace sluice
