#include "sluice/describe.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace sluice {
namespace detail {

FieldBase::FieldBase(const char* spelling, std::string_view description) {
  said_.member = last_name(spelling);
  if (!description.empty()) said_.attributes["description"] = description;
}
FieldBase::FieldBase(const FieldBase& other) = default;
FieldBase::FieldBase(FieldBase&& other) noexcept = default;
FieldBase::~FieldBase() = default;

void FieldBase::set(std::string_view name, json::value&& value) {
  said_.attributes[name] = std::move(value);
}
void FieldBase::set_text(std::string_view name, std::string_view value) {
  said_.attributes[name] = value;
}
void FieldBase::set_number(std::string_view name, std::int64_t value) {
  said_.attributes[name] = value;
}
void FieldBase::set_number(std::string_view name, std::uint64_t value) {
  said_.attributes[name] = value;
}
void FieldBase::set_number(std::string_view name, double value) {
  said_.attributes[name] = value;
}
void FieldBase::set_true(std::string_view name) {
  said_.attributes[name] = true;
}
void FieldBase::set_examples(std::initializer_list<json::value_ref> values) {
  said_.attributes["examples"] = json::array(values);
}
void FieldBase::set_header(std::string_view name) {
  said_.header = true;
  set_text("x-mcp-header", name);
}

}  // namespace detail

StructDescription::StructDescription(std::string_view description,
                                     std::initializer_list<const detail::FieldBase*> fields)
    : description_(description) {
  members_.reserve(fields.size());
  for (const detail::FieldBase* const field : fields) members_.push_back(field->said());
}
StructDescription::StructDescription(const StructDescription& other) = default;
StructDescription::StructDescription(StructDescription&& other) noexcept = default;
StructDescription& StructDescription::operator=(const StructDescription& other) = default;
StructDescription& StructDescription::operator=(StructDescription&& other) noexcept = default;
StructDescription::~StructDescription() = default;

StructDescription StructDescription::open() && {
  open_ = true;
  return std::move(*this);
}

const detail::MemberDescription* StructDescription::find(std::string_view member) const {
  const auto found = std::ranges::find(members_, member, &detail::MemberDescription::member);
  return found == members_.end() ? nullptr : &*found;
}

}  // namespace sluice
