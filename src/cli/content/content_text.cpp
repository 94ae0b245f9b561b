#include "cli/content/content_text.hpp"

#include <algorithm>
#include <utility>

#include "cli/content/saved_files.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/base64.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

void append_text(ShownContent& out, std::string_view text, const ContentPlace& place) {
  out.text.append(place.passes_text ? std::string(text) : printable(text));
  if (!out.text.empty() && !out.text.ends_with('\n')) out.text.push_back('\n');
}

void save(ShownContent& out, std::string_view kind, std::string_view mime_type,
          std::string_view base64, const ContentPlace& place) {
  const auto bytes = decode_base64(base64);
  if (!bytes) {
    out.notes.push_back("the server's " + std::string(kind) + " is no Base64, and is not saved");
    out.has_failed = true;
    return;
  }
  if (auto image = image_sequence(place.images, mime_type, *bytes); !image.empty()) {
    out.images.push_back({.position = out.text.size(), .sequence = std::move(image)});
  }
  const auto path = save_new_file(place.folder, kind, mime_type, *bytes);
  if (!path) {
    out.notes.push_back(path.error().message);
    out.has_failed = true;
    return;
  }
  const std::string type = mime_type.empty() ? "" : std::string(mime_type) + ", ";
  out.notes.push_back("saved " + *path + " (" + type + std::to_string(bytes->size()) + " bytes)");
}

void append_resource(ShownContent& out, const json::object& resource, const ContentPlace& place) {
  if (const json::value* const blob = resource.if_contains("blob");
      blob != nullptr && blob->is_string()) {
    return save(out, "resource", text_at(resource, "mimeType"), blob->get_string(), place);
  }
  append_text(out, text_at(resource, "text"), place);
}

void append_block(ShownContent& out, const json::value& block, const ContentPlace& place) {
  const json::object* const members = block.if_object();
  const std::string_view type = members == nullptr ? std::string_view() : text_at(*members, "type");
  if (type == "text") return append_text(out, text_at(*members, "text"), place);
  if (type == "image" || type == "audio") {
    const json::value* const data = members->if_contains("data");
    if (data == nullptr || !data->is_string()) {
      out.notes.push_back("the server has sent an " + std::string(type) + " without data");
      out.has_failed = true;
      return;
    }
    return save(out, type, text_at(*members, "mimeType"), data->get_string(), place);
  }
  if (type == "resource_link") {
    const std::string_view about = text_at(*members, "name");
    return append_text(
        out, one_line(text_at(*members, "uri")) + (about.empty() ? "" : "  " + one_line(about)),
        place);
  }
  if (const json::object* const resource =
          type == "resource" ? object_at(*members, "resource") : nullptr) {
    return append_resource(out, *resource, place);
  }
  append_text(out, printable_json(to_json(block)), place);
}

}  // namespace

void ShownContent::replace_text(std::string changed) {
  for (Image& image : images) {
    const std::size_t behind = text.size() - image.position;
    image.position = changed.size() - std::min(behind, changed.size());
  }
  text = std::move(changed);
}

std::string ShownContent::output() const {
  std::string out;
  std::size_t done = 0;
  for (const Image& image : images) {
    out.append(text, done, image.position - done).append(image.sequence);
    done = image.position;
  }
  return out.append(text, done);
}

ShownContent server_mistake(std::string_view what) {
  return {.notes = {"the server's answer is wrong: " + std::string(what)}, .has_failed = true};
}

ShownContent shown_content(const json::array& blocks, const ContentPlace& place) {
  ShownContent out;
  for (const json::value& block : blocks) append_block(out, block, place);
  return out;
}

ShownContent shown_resource(const json::array& contents, const ContentPlace& place) {
  ShownContent out;
  for (const json::value& each : contents) {
    if (each.is_object()) append_resource(out, each.get_object(), place);
  }
  return out;
}

int print(const ShownContent& content) {
  for (const std::string& note : content.notes) complain(note);
  if (const int printed = print(content.output()); printed != kExitOk) return printed;
  return content.has_failed ? kExitFailure : kExitOk;
}

}  // namespace sluice
