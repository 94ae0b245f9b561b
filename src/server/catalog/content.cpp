#include "sluice/content.hpp"

#include <utility>

#include "core/log.hpp"
#include "core/log_limit.hpp"
#include "core/text/base64.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "server/catalog/content_json.hpp"

namespace sluice {
namespace {

void append_string_member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out.append(",\"").append(name).append("\":");
  append_json_string(out, value);
}

std::string finish(std::string block, const ContentAnnotations& annotations) {
  std::string members;
  if (!annotations.audience.empty()) {
    members.append(R"(,"audience":[)");
    for (const std::string& who : annotations.audience) {
      if (members.back() != '[') members.push_back(',');
      append_json_string(members, who);
    }
    members.push_back(']');
  }
  if (annotations.priority >= 0) {
    members.append(R"(,"priority":)");
    append_json(members, json::value(annotations.priority));
  }
  append_string_member(members, "lastModified", annotations.last_modified);
  if (!members.empty()) block.append(R"(,"annotations":{)").append(members, 1).append("}");
  block.push_back('}');
  return block;
}

std::string text_block(std::string_view text) {
  std::string out = R"({"type":"text","text":)";
  append_json_string(out, text);
  return out;
}

std::string data_block(std::string_view type, std::string_view bytes, std::string_view mime_type) {
  std::string out = R"({"type":")";
  out.append(type).append(R"(","data":")");
  append_base64(out, bytes);
  out.append(R"(","mimeType":)");
  append_json_string(out, mime_type);
  return out;
}

void append_meta(std::string& out, const ResourceContents& contents) {
  const Result<std::string> meta = one_line_json(contents.meta);
  if (meta && meta->find_first_not_of(" \t") == meta->find('{')) {
    out.append(R"(,"_meta":)").append(*meta);
  } else {
    static LogLimit limit;
    if (!limit.take()) return;
    log_error("the meta of a resource is no JSON object; it is left out",
              {{"uri", std::string_view(contents.uri)}});
  }
}

}  // namespace

void append_resource_contents(std::string& out, const ResourceContents& contents) {
  out.append(R"({"uri":)");
  append_json_string(out, contents.uri);
  append_string_member(out, "mimeType", contents.mime_type);
  if (contents.binary) {
    out.append(R"(,"blob":")");
    append_base64(out, contents.data);
    out.push_back('"');
  } else {
    out.append(R"(,"text":)");
    append_json_string(out, contents.data);
  }
  if (!contents.meta.empty()) append_meta(out, contents);
  out.push_back('}');
}

Content Content::text(std::string_view text, const ContentAnnotations& annotations) {
  return {Kind::plain, finish(text_block(text), annotations), {}};
}

Content Content::image(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations) {
  return {Kind::plain, finish(data_block("image", bytes, mime_type), annotations), {}};
}

Content Content::audio(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations) {
  return {Kind::audio, finish(data_block("audio", bytes, mime_type), annotations),
          finish(text_block("[audio, " + std::string(mime_type) + "]"), annotations)};
}

Content Content::link(const ResourceLink& link, const ContentAnnotations& annotations) {
  std::string out = R"({"type":"resource_link","uri":)";
  append_json_string(out, link.uri);
  out.append(R"(,"name":)");
  append_json_string(out, link.name);
  append_string_member(out, "title", link.title);
  append_string_member(out, "description", link.description);
  append_string_member(out, "mimeType", link.mime_type);
  return {Kind::link, finish(std::move(out), annotations),
          finish(text_block(link.name + ": " + link.uri), annotations)};
}

Content Content::resource(const ResourceContents& contents, const ContentAnnotations& annotations) {
  std::string out = R"({"type":"resource","resource":)";
  append_resource_contents(out, contents);
  return {Kind::plain, finish(std::move(out), annotations), {}};
}

void Content::append_to(std::string& out, const Revision& revision) const {
  const bool known = kind_ == Kind::plain || (kind_ == Kind::audio && revision.audio) ||
                     (kind_ == Kind::link && revision.resource_links);
  out.append(known ? json_ : instead_);
}

}  // namespace sluice
