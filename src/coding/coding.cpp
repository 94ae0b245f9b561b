#include "sluice/detail/coding.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "json/json.hpp"
#include "json/path.hpp"
#include "json_schema/violation.hpp"

namespace sluice {
namespace {

/// Collects the `x-mcp-header` names of members that are reached through `properties` alone. They
/// are in lower case, because header names are compared without case.
void collect_headers(const json::value& schema, std::multiset<std::string>& names) {
  const json::object* const object = schema.if_object();
  if (object == nullptr) return;
  if (const json::value* const name = object->if_contains("x-mcp-header")) {
    names.insert(to_lower(name->as_string()));
  }
  const json::value* const properties = object->if_contains("properties");
  if (properties == nullptr) return;
  for (const auto& [name, property] : properties->as_object()) collect_headers(property, names);
}

/// How much work may be for alternatives that fail: a tenth of a second, or, in a large value, so
/// many times the work for the others.
constexpr std::size_t kMaxWaste = 100'000;
constexpr std::size_t kMaxWastePerWork = 16;

/// A step of a path in the form it has when it is not the first.
template <class Step>
std::string path_step(Step step) {
  std::string out = "?";
  append_json_path(out, step);
  return out.erase(0, 1);
}

}  // namespace

std::string DecodeError::describe() const {
  return path + ": " + message;
}

struct SchemaBuilder::Definitions {
  struct Definition {
    const void* key = nullptr;
    std::string name;
    bool referred = false;
    json::value schema;
    json::value reference;
  };

  const void* root;
  SchemaUse use;
  std::vector<Definition> all = {};  // those being built, and those that are in $defs
  std::vector<std::size_t> at_work = {};
  std::size_t headers = 0;
};

SchemaBuilder::SchemaBuilder(const void* root, SchemaUse use)
    : definitions_(new Definitions{.root = root, .use = use}) {}

SchemaBuilder::~SchemaBuilder() {
  delete definitions_;
}

SchemaUse SchemaBuilder::use() const {
  return definitions_->use;
}

void SchemaBuilder::count_header() {
  ++definitions_->headers;
}

const json::value* SchemaBuilder::begin(const void* key, std::string_view name) {
  using Definition = Definitions::Definition;
  auto& all = definitions_->all;
  const auto known = std::ranges::find(all, key, &Definition::key);
  if (known != all.end()) {
    known->referred = true;
    return &known->reference;
  }
  std::string unique(name);
  for (int next = 2; std::ranges::find(all, unique, &Definition::name) != all.end(); ++next) {
    unique = std::string(name) + std::to_string(next);
  }
  Definition definition;
  definition.key = key;
  definition.reference = {{"$ref", key == definitions_->root ? "#" : "#/$defs/" + unique}};
  definition.name = std::move(unique);
  definitions_->at_work.push_back(all.size());
  all.push_back(std::move(definition));
  return nullptr;
}

json::value SchemaBuilder::end(json::value schema) {
  const std::size_t at = definitions_->at_work.back();
  definitions_->at_work.pop_back();
  Definitions::Definition& definition = definitions_->all[at];
  if (definition.referred && definition.key != definitions_->root) {
    definition.schema = std::move(schema);
    return definition.reference;
  }
  // Nothing inside the schema refers to it, so it is written in full wherever it is used.
  definition.key = nullptr;
  definition.name.clear();
  return schema;
}

json::value SchemaBuilder::finish(json::value schema) const {
  json::object definitions;
  for (const Definitions::Definition& definition : definitions_->all) {
    if (!definition.schema.is_null()) definitions[definition.name] = definition.schema;
  }
  if (!definitions.empty()) schema.as_object()["$defs"] = std::move(definitions);

  std::multiset<std::string> headers;
  collect_headers(schema, headers);
  if (headers.size() != definitions_->headers) {
    throw std::logic_error(
        "x-mcp-header: a member inside an array, a map, a variant or a recursive struct cannot "
        "be repeated in a header");
  }
  for (const std::string& name : headers) {
    if (headers.count(name) > 1) {
      throw std::logic_error("x-mcp-header: two members have the name \"" + name + "\"");
    }
  }
  return schema;
}

bool Decoder::fail(std::string message) {
  message_ = std::move(message);
  return false;
}

bool Decoder::fail_type(std::string_view what, const json::value& value) {
  type_ = what;
  return fail(std::string("expected ").append(what).append(", got ").append(type_name(value)));
}

bool Decoder::fail_value(std::string_view what, const json::value& value) {
  return fail(std::string("expected ").append(what).append(", got ") + describe_value(value));
}

bool Decoder::fail_name(std::span<const std::string_view> names, const json::value& value) {
  constexpr std::size_t kMaxListed = 10;
  std::string what = names.size() > 1 ? "one of " : "";
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) {
    if (i != 0) what += ", ";
    what += describe_text(names[i]);
  }
  if (names.size() > kMaxListed) what += ", ...";
  named_ = true;
  return fail_value(what, value);
}

bool Decoder::fail_size(std::size_t count, std::size_t got) {
  return fail("expected " + std::to_string(count) + (count == 1 ? " item" : " items") + ", got " +
              std::to_string(got));
}

bool Decoder::fail_missing(std::string_view member) {
  return fail("missing required property " + describe_text(member));
}

bool Decoder::fail_unknown(const json::object& object, std::span<const std::string_view> members) {
  for (const auto& member : object) {
    const std::string_view name = member.key();
    if (std::ranges::find(members, name) == members.end()) {
      fail("there is no such property");
      return fail_at(name);
    }
  }
  return fail("there are too many properties");
}

bool Decoder::fail_at(std::size_t index) {
  path_.insert(0, path_step(index));
  ++steps_;
  return false;
}

bool Decoder::fail_at(std::string_view name) {
  path_.insert(0, path_step(name));
  ++steps_;
  return false;
}

bool Decoder::enter(std::size_t items, std::size_t item_size) {
  count(1 + items);
  if (is_exhausted()) return false;
  effort_->memory += items * item_size;
  if (effort_->memory > kMostMemory) {
    return fail("takes more memory than the " + std::to_string(kMostMemory >> 20U) +
                " MiB that a value may take");
  }
  if (depth_ >= kMaxJsonDepth) {
    return fail("is more than " + std::to_string(kMaxJsonDepth) + " levels deep");
  }
  ++depth_;
  return true;
}

Decoder Decoder::alternative() const {
  return {unknown_, depth_, *effort_};
}

bool Decoder::is_exhausted() const {
  // What is not wasted is at most about the size of the value.
  return effort_->wasted > kMaxWaste + kMaxWastePerWork * (effort_->work - effort_->wasted);
}

void Decoder::waste() {
  // A part of it may have been wasted already.
  effort_->wasted = before_.wasted + (effort_->work - before_.work);
  effort_->memory = before_.memory;
}

DecodeError Decoder::error(std::string_view root) const {
  if (is_exhausted()) {
    return {.path = std::string(root),
            .message = "cannot be read: too many alternatives fit a part of it, but not the rest"};
  }
  std::string_view steps = path_;
  if (root.empty() && steps.starts_with('.')) steps.remove_prefix(1);
  return {.path = std::string(root).append(steps), .message = message_};
}

void Decoder::Alternatives::add(Decoder&& failed) {
  failed.waste();
  // An alternative that fails at its type or its name was not the one intended. One that fails
  // further inside probably was.
  const bool other_type = !failed.type_.empty() && failed.steps_ == 0;
  const bool other_name = failed.named_ && failed.steps_ <= 1;
  const std::size_t closeness = other_type || other_name ? 0 : 1 + failed.steps_;
  only_types_ = only_types_ && other_type;
  const std::string type = failed.type_ + " or ";
  if (!failed.type_.empty() && !(" or " + types_).contains(" or " + type)) types_ += type;
  append_mismatch(mismatches_, failed.steps_ == 0 ? failed.message_ : failed.error("").describe());
  ++count_;
  if (rivals_ != 0 && closeness < closeness_) return;
  rivals_ = rivals_ != 0 && closeness == closeness_ ? rivals_ + 1 : 1;
  closeness_ = closeness;
  message_ = std::move(failed.message_);
  path_ = std::move(failed.path_);
  steps_ = failed.steps_;
}

bool Decoder::Alternatives::fail(Decoder& decoder, const json::value& value) {
  if (count_ == 1 || (closeness_ > 0 && rivals_ == 1)) {
    decoder.path_ = std::move(path_);
    decoder.steps_ = steps_;
    return decoder.fail(std::move(message_));
  }
  if (only_types_) {
    return decoder.fail_type(types_.substr(0, types_.rfind(" or ")), value);
  }
  return decoder.fail(describe_mismatches(count_, mismatches_));
}

void Encoder::enter() {
  if (depth_ >= kMaxJsonDepth) throw std::length_error("a value is nested too deeply for JSON");
  ++depth_;
}

json::value Encoder::number(double value) {
  if (!std::isfinite(value)) throw std::domain_error("JSON has no NaN and no infinity");
  return value;
}

void Encoder::fail_enumerator(std::string_view type, long long number) {
  throw std::domain_error(std::to_string(number).append(" is not an enumerator of ").append(type));
}

}  // namespace sluice
