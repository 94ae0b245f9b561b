#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/revision.hpp"

namespace sluice {

/// What a resource holds: text, or bytes of any kind.
struct ResourceContents {
  std::string uri;
  std::string mime_type = {};
  std::string data;
  bool binary = false;    // `data` is bytes, sent as Base64; else it is UTF-8 text
  std::string meta = {};  // JSON text of an object, or empty
};

/// Appends `contents` as TextResourceContents or BlobResourceContents.
void append_resource_contents(std::string& out, const ResourceContents& contents);

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

}  // namespace sluice
