#pragma once

// The results of tools, resources, prompts and completions.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/caching.hpp"
#include "sluice/json.hpp"

namespace sluice {

struct Revision;

/// The contents of a resource: text or bytes.
struct ResourceContents {
  std::string uri;             // empty in a resource's result: the URI that was read
  std::string mime_type = {};  // empty in a resource's result: that of the ResourceOptions
  std::string data;
  bool binary = false;     // true: `data` is bytes, sent as Base64; false: UTF-8 text
  json::object meta = {};  // the `_meta` of these contents
};

/// A link to a resource, in a tool's result or a prompt's message.
struct ResourceLink {
  std::string uri;
  std::string name;
  std::string title = {};
  std::string description = {};
  std::string mime_type = {};
};

/// Says who content is for and how much it matters (MCP, Resources, Annotations). Empty members are
/// not sent.
struct ContentAnnotations {
  std::vector<std::string> audience = {};  // "user", "assistant" or both
  /// 0 (least) to 1 (most important). Negative or NaN: not sent; more than 1: sent as 1.
  double priority = -1;
  std::string last_modified = {};  // ISO 8601
};

/// A content block of a tool's result or a prompt's message. Immutable. Text and bytes are kept as
/// they are until the block is written, which a worker does if it is long.
class Content {
 public:
  static Content text(std::string_view text, const ContentAnnotations& annotations = {});
  // `bytes` of images and audio are those of a file of the MIME type. They are sent as Base64.
  static Content image(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations = {});
  static Content audio(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations = {});
  static Content link(const ResourceLink& link, const ContentAnnotations& annotations = {});
  static Content resource(const ResourceContents& contents,
                          const ContentAnnotations& annotations = {});

  /// The same block with a `_meta`, which revisions before 2025-06-18 do not have.
  [[nodiscard]] Content with_meta(const json::object& meta) const;

  /// Appends the block as JSON. If `revision` does not have this kind of block, appends a text
  /// block that says what it was.
  void append_to(std::string& out, const Revision& revision) const;
  /// The approximate size of the block, in bytes.
  std::size_t size() const { return before_.size() + data_.size() + after_.size() + meta_.size(); }

 private:
  enum class Kind : std::uint8_t { plain, audio, link };
  enum class Form : std::uint8_t { json, text, bytes };
  Content(Kind kind, Form form, std::string before, std::string_view data, std::string after,
          std::string instead = {})
      : kind_(kind),
        form_(form),
        before_(std::move(before)),
        data_(data),
        after_(std::move(after)),
        instead_(std::move(instead)) {}

  Kind kind_;
  Form form_;           // of data_
  std::string before_;  // JSON
  std::string data_;
  std::string after_;    // JSON
  std::string instead_;  // the text block for older revisions; empty for Kind::plain
  std::string meta_;     // a JSON member with a comma before it, or empty
};

// Results have a `_meta`: JSON objects under keys such as "example.com/name" (2026-07-28, Base
// Protocol, `_meta`). It is nested in at most 100 levels; a deeper one is left out, which is
// logged. The members io.modelcontextprotocol/serverInfo and io.modelcontextprotocol/related-task
// are left out, because the server itself writes them.

/// The result of a tool.
struct ToolResult {
  /// Sent as a text block if `content` is empty. If `text` is empty too, the structured content is
  /// sent as text.
  std::string text = {};
  /// Follows the tool's output schema; null: there is none. Revisions before 2026-07-28 allow only
  /// objects; their clients get other values as text alone. If it is nested in more than 120
  /// levels, the call fails with error -32603 (internal error), and the reason is logged.
  json::value structured = {};
  /// The same as JSON text, for programs that have it as text; used if it is not empty. If it is
  /// not JSON, the call fails in the same way.
  std::string structured_text = {};
  bool is_error = false;  // the tool failed, and the model should read the content
  std::vector<Content> content = {};
  /// The same as `structured`, shared; used if the other two are empty. The text of a long one is
  /// written by a worker, not on the event loop.
  std::shared_ptr<const json::value> value = {};
  json::object meta = {};  // the result's `_meta`
};

/// The result of a resource.
struct ResourceResult {
  std::vector<ResourceContents> contents = {};
  /// How long this result may be reused. Empty: as ResourceOptions::caching says.
  std::optional<Caching> caching = {};
  json::object meta = {};  // the result's `_meta`
};

struct PromptMessage {
  enum class Role : std::uint8_t { user, assistant };
  Role role = Role::user;
  Content content;
};

/// The result of a prompt.
struct PromptResult {
  std::string description = {};
  std::vector<PromptMessage> messages = {};
  json::object meta = {};  // the result's `_meta`
};

/// Values by name, such as the variables of a URI template or the arguments of a prompt.
using Variables = std::map<std::string, std::string, std::less<>>;

/// A URI that matches a resource template, and the values of the template's variables.
struct ResourceMatch {
  std::string uri;
  Variables variables;
};

/// An argument that a user is typing.
struct TypedArgument {
  std::string name;
  std::string value;  // typed so far
  Variables context;  // the arguments that have a value already
};

/// Suggestions for a value that a user is typing.
struct ArgumentCompletion {
  static constexpr std::size_t kMaxValues = 100;  // further values are not sent
  std::vector<std::string> values = {};           // best first
  std::optional<std::uint64_t> total = {};        // the number of all suggestions, if known
  bool has_more = false;                          // there are more than `values`
};

}  // namespace sluice
