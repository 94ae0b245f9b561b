#pragma once

// What tools, resources and prompts answer with.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

struct Revision;

/// What a resource holds: text, or bytes of any kind.
struct ResourceContents {
  std::string uri;
  std::string mime_type = {};
  std::string data;
  bool binary = false;    // `data` is bytes, sent as Base64; else it is UTF-8 text
  std::string meta = {};  // JSON text of an object, or empty
};

/// A pointer to a resource, in a tool's result or a prompt's message.
struct ResourceLink {
  std::string uri;
  std::string name;
  std::string title = {};
  std::string description = {};
  std::string mime_type = {};
};

/// Who content is for and how much it matters (Resources, Annotations). Empty members are left out.
struct ContentAnnotations {
  std::vector<std::string> audience = {};  // "user", "assistant"
  double priority = -1;                    // 0 to 1; negative: none
  std::string last_modified = {};          // ISO 8601
};

/// A content block of a tool's result or a prompt's message. Immutable JSON, made once.
class Content {
 public:
  static Content text(std::string_view text, const ContentAnnotations& annotations = {});
  /// `bytes` as they are in a file of that type.
  static Content image(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations = {});
  static Content audio(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations = {});
  static Content link(const ResourceLink& link, const ContentAnnotations& annotations = {});
  static Content resource(const ResourceContents& contents,
                          const ContentAnnotations& annotations = {});

  /// Appends the block as JSON. What `revision` does not know becomes text that says what it was.
  void append_to(std::string& out, const Revision& revision) const;

 private:
  enum class Kind : std::uint8_t { plain, audio, link };
  Content(Kind kind, std::string json, std::string instead)
      : kind_(kind), json_(std::move(json)), instead_(std::move(instead)) {}

  Kind kind_;
  std::string json_;
  std::string instead_;  // a text block for older revisions; empty for a plain one
};

/// What a tool answers: `content`, or `text` alone if there is none. `structured` is JSON text, or
/// empty; it follows the tool's output schema, and stands for a text that is empty. Values other
/// than objects are left out for clients of revisions that have none.
struct ToolResult {
  std::string text = {};
  std::string structured = {};
  bool is_error = false;
  std::vector<Content> content = {};
};

struct PromptMessage {
  enum class Role : std::uint8_t { user, assistant };
  Role role = Role::user;
  Content content;
};

/// What a prompt answers.
struct PromptResult {
  std::string description = {};
  std::vector<PromptMessage> messages = {};
};

/// Values by name, such as those of a URI template's variables.
using Variables = std::map<std::string, std::string, std::less<>>;

/// A URI, and what the variables of a template stand for in it.
struct ResourceMatch {
  std::string uri;
  Variables variables;
};

/// An argument that a user is typing, and those chosen so far.
struct TypedArgument {
  std::string name;
  std::string value;
  Variables context;
};

/// What completes a value that a user is typing.
struct ArgumentCompletion {
  static constexpr std::size_t kMaxValues = 100;  // more are not sent
  std::vector<std::string> values = {};           // best first
  std::optional<std::uint64_t> total = {};
  bool has_more = false;
};

}  // namespace sluice
