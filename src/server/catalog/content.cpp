#include "sluice/content.hpp"

#include <algorithm>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/text/base64.hpp"
#include "json/json.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/revision.hpp"
#include "protocol/task.hpp"
#include "server/catalog/content_json.hpp"

namespace sluice {
namespace {

void append_string_member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out.append(",\"").append(name).append("\":");
  append_json_string(out, value);
}

/// What ends a block after `members`.
std::string finish(std::string members, const ContentAnnotations& annotations) {
  std::string own;
  if (!annotations.audience.empty()) {
    own.append(R"(,"audience":[)");
    for (const std::string& who : annotations.audience) {
      if (own.back() != '[') own.push_back(',');
      append_json_string(own, who);
    }
    own.push_back(']');
  }
  if (annotations.priority >= 0) {
    own.append(R"(,"priority":)");
    append_json(own, json::value(std::min(annotations.priority, 1.0)));
  }
  append_string_member(own, "lastModified", annotations.last_modified);
  if (!own.empty()) members.append(R"(,"annotations":{)").append(own, 1).append("}");
  members.push_back('}');
  return members;
}

constexpr std::string_view kTextBegin = R"({"type":"text","text":)";

/// What a block of bytes begins with, before their quotes.
std::string data_begin(std::string_view type) {
  return R"({"type":")" + std::string(type) + R"(","data":)";
}

std::string mime_member(std::string_view mime_type) {
  std::string out = R"(,"mimeType":)";
  append_json_string(out, mime_type);
  return out;
}

void append_bytes(std::string& out, std::string_view bytes) {
  out.push_back('"');
  append_base64(out, bytes);
  out.push_back('"');
}

/// Appends the member `_meta` with a comma before it, unless there is nothing to send.
void append_meta(std::string& out, const json::object& meta) {
  const std::string members = meta_members(meta);
  if (!members.empty()) out.append(R"(,"_meta":{)").append(members).append("}");
}

// Contents of a resource are these two, with the data between them.

void append_before_data(std::string& out, const ResourceContents& contents) {
  out.append(R"({"uri":)");
  append_json_string(out, contents.uri);
  append_string_member(out, "mimeType", contents.mime_type);
  out.append(contents.binary ? R"(,"blob":)" : R"(,"text":)");
}

void append_after_data(std::string& out, const ResourceContents& contents) {
  append_meta(out, contents.meta);
  out.push_back('}');
}

}  // namespace

std::string meta_members(const json::object& meta) {
  if (meta.empty()) return {};
  for (const auto& [name, value] : meta) {
    if (!is_deeper_than(value, kMaxMetaDepth - 1)) continue;
    static LogLimit limit;
    if (limit.take()) {
      log_error("the _meta of a result is nested too deep; it is left out",
                {{"member", std::string_view(name)}});
    }
    return {};
  }
  std::string out;
  for (const auto& [name, value] : meta) {
    if (name == kServerInfoKey || name == kRelatedTaskKey) continue;
    if (!out.empty()) out.push_back(',');
    append_json_string(out, name);
    out.push_back(':');
    append_json(out, value);
  }
  return out;
}

void append_resource_contents(std::string& out, const ResourceContents& contents) {
  append_before_data(out, contents);
  if (contents.binary) {
    append_bytes(out, contents.data);
  } else {
    append_json_string(out, contents.data);
  }
  append_after_data(out, contents);
}

Content Content::text(std::string_view text, const ContentAnnotations& annotations) {
  return {Kind::plain, Form::text, std::string(kTextBegin), text, finish({}, annotations)};
}

Content Content::image(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations) {
  return {Kind::plain, Form::bytes, data_begin("image"), bytes,
          finish(mime_member(mime_type), annotations)};
}

Content Content::audio(std::string_view bytes, std::string_view mime_type,
                       const ContentAnnotations& annotations) {
  std::string instead(kTextBegin);
  append_json_string(instead, "[audio, " + std::string(mime_type) + "]");
  return {Kind::audio,
          Form::bytes,
          data_begin("audio"),
          bytes,
          finish(mime_member(mime_type), annotations),
          finish(std::move(instead), annotations)};
}

Content Content::link(const ResourceLink& link, const ContentAnnotations& annotations) {
  std::string out = R"({"type":"resource_link","uri":)";
  append_json_string(out, link.uri);
  out.append(R"(,"name":)");
  append_json_string(out, link.name);
  append_string_member(out, "title", link.title);
  append_string_member(out, "description", link.description);
  append_string_member(out, "mimeType", link.mime_type);
  std::string instead(kTextBegin);
  append_json_string(instead, link.name + ": " + link.uri);
  return {Kind::link, Form::json, finish(std::move(out), annotations),
          {},         {},         finish(std::move(instead), annotations)};
}

Content Content::resource(const ResourceContents& contents, const ContentAnnotations& annotations) {
  std::string before = R"({"type":"resource","resource":)";
  append_before_data(before, contents);
  std::string after;
  append_after_data(after, contents);
  return {Kind::plain, contents.binary ? Form::bytes : Form::text, std::move(before), contents.data,
          finish(std::move(after), annotations)};
}

Content Content::with_meta(const json::object& meta) const {
  Content out(*this);
  out.meta_.clear();
  append_meta(out.meta_, meta);
  return out;
}

void Content::append_to(std::string& out, const Revision& revision) const {
  const bool known = kind_ == Kind::plain || (kind_ == Kind::audio && revision.audio) ||
                     (kind_ == Kind::link && revision.resource_links);
  if (known) {
    out.append(before_);
    if (form_ == Form::text) append_json_string(out, data_);
    if (form_ == Form::bytes) append_bytes(out, data_);
    out.append(after_);
  } else {
    out.append(instead_);
  }
  if (meta_.empty() || !revision.titles) return;
  out.pop_back();
  out.append(meta_).push_back('}');
}

}  // namespace sluice
