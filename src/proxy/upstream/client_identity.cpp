#include "proxy/upstream/client_identity.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/version.hpp"
#include "json/members.hpp"
#include "protocol/client_capabilities.hpp"
#include "protocol/negotiation.hpp"
#include "proxy/translation/translation.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kClientCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

std::unexpected<Error> ill_typed(const std::string& member, std::string_view type) {
  return fail(kInvalidParams,
              "Invalid params: capabilities." + member + " must be " + std::string(type));
}

/// Checks that `name` of `of` is an object, if it is there.
Result<void> check_object(const json::object& of, std::string_view name, const std::string& path) {
  const json::value* const value = of.if_contains(name);
  if (value != nullptr && !value->is_object()) return ill_typed(path, "an object");
  return {};
}

/// The types of the members that ClientCapabilities has (2026-07-28, schema). The server behind
/// would refuse the whole conversation for one that is wrong, and could not say whose it is.
Result<void> check_types(const json::object& declared) {
  struct Capability {
    std::string_view name;
    std::array<std::string_view, 2> members = {};  // that are objects too
    bool has_only_objects = false;
  };
  static constexpr std::array<Capability, 5> kKnown = {{
      {"roots"},
      {"sampling", {"context", "tools"}},
      {"elicitation", {"form", "url"}},
      {"experimental", {}, true},
      {"extensions", {}, true},
  }};
  for (const Capability& known : kKnown) {
    const std::string path(known.name);
    if (Result<void> fits = check_object(declared, known.name, path); !fits) return fits;
    const json::object* const found = object_at(declared, known.name);
    if (found == nullptr) continue;
    for (const auto& [key, value] : *found) {
      const std::string_view name = key;
      const bool is_object =
          known.has_only_objects || name == known.members[0] || name == known.members[1];
      if (is_object && !value.is_object()) {
        return ill_typed(path + "." + std::string(name), "an object");
      }
    }
  }
  const json::object* const roots = object_at(declared, "roots");
  const json::value* const changes = roots == nullptr ? nullptr : roots->if_contains("listChanged");
  if (changes != nullptr && !changes->is_bool()) {
    return ill_typed("roots.listChanged", "true or false");
  }
  return {};
}

}  // namespace

Result<ClientIdentity> identity_of(const json::object* info, const json::object* capabilities) {
  ClientIdentity identity{.info = {.name = "sluice proxy", .version = std::string(kVersion)}};
  if (info != nullptr) identity.info = decode_client_info(*info);
  if (capabilities == nullptr) return identity;
  const JsonSize size = size_of(*capabilities, kMaxCapabilityValues);
  if (size.values > kMaxCapabilityValues || size.bytes > kMaxCapabilityBytes) {
    return fail(kInvalidParams, "Invalid params: capabilities may have at most " +
                                    std::to_string(kMaxCapabilityValues) + " values and " +
                                    std::to_string(kMaxCapabilityBytes) +
                                    " bytes of names and strings");
  }
  if (Result<void> fits = check_types(*capabilities); !fits) {
    return std::unexpected(std::move(fits.error()));
  }
  identity.capabilities = std::make_shared<const json::object>(passed_on(*capabilities));
  return identity;
}

Result<ClientIdentity> IdentityReader::read(const json::object& params) {
  const json::object* const meta = object_at(params, "_meta");
  if (meta == nullptr) return identity_of(nullptr, nullptr);
  const json::object* const info = object_at(*meta, kClientInfoKey);
  const json::object* const capabilities = object_at(*meta, kClientCapabilitiesKey);
  if (info == nullptr || capabilities == nullptr) return identity_of(info, capabilities);
  if (last_ && *info == info_ && *capabilities == capabilities_) return *last_;
  Result<ClientIdentity> identity = identity_of(info, capabilities);
  if (!identity || size_of(*info, kMaxCapabilityValues).bytes > kMaxCapabilityBytes)
    return identity;
  info_ = json::object(*info, json::storage_ptr());
  capabilities_ = json::object(*capabilities, json::storage_ptr());
  last_ = *identity;
  return identity;
}

}  // namespace sluice
