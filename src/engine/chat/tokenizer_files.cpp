#include "engine/chat/tokenizer_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/chat/text_file.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kConfig = "tokenizer_config.json";
constexpr std::string_view kJinja = "chat_template.jinja";

/// The templates: a text, or a list of those that have names.
Result<void> read_templates(const json::value& value, const FileFaults& fault,
                            ChatTemplateText& out) {
  if (value.is_string()) {
    out.text = value.get_string();
  } else if (value.is_array()) {
    for (const json::value& each : value.get_array()) {
      const json::object* const named = each.if_object();
      const std::string_view name = named == nullptr ? std::string_view() : text_at(*named, "name");
      const std::string_view text =
          named == nullptr ? std::string_view() : text_at(*named, "template");
      if (name.empty() || text.empty()) {
        return fault("has a chat_template without a name or a text in its list");
      }
      if (name == "default") out.text = text;
      if (name == "tool_use") out.tool_text = text;
    }
    if (out.text.empty()) return fault("has no chat_template with the name \"default\"");
  } else if (!value.is_null()) {
    return fault("has a chat_template that is neither a text nor a list");
  }
  return {};
}

Result<void> read_tokens(const json::object& config, const FileFaults& fault,
                         ChatTemplateText& out) {
  out.bos = token_text(config.if_contains("bos_token"));
  out.eos = token_text(config.if_contains("eos_token"));
  const auto add = [](std::vector<std::string>& to, std::string token) {
    if (!token.empty()) to.push_back(std::move(token));
  };
  add(out.special_tokens, out.bos);
  add(out.special_tokens, out.eos);
  if (const json::value* const more = config.if_contains("additional_special_tokens")) {
    if (const json::array* const list = more->if_array()) {
      for (const json::value& each : *list) add(out.special_tokens, token_text(&each));
    }
  }
  const json::value* const added = config.if_contains("added_tokens_decoder");
  if (added == nullptr || added->is_null()) return {};
  if (!added->is_object()) return fault("has an added_tokens_decoder that is no object");
  for (const auto& [id, token] : added->get_object()) {
    const json::object* const facts = token.if_object();
    if (facts == nullptr || text_at(*facts, "content").empty()) {
      return fault("has a token without its content in added_tokens_decoder");
    }
    const json::value* const special = facts->if_contains("special");
    const bool is_special = special != nullptr && special->is_bool() && special->get_bool();
    add(is_special ? out.special_tokens : out.added_tokens,
        std::string(text_at(*facts, "content")));
  }
  return {};
}

Result<ChatTemplateText> read_config(const std::string& path) {
  const Result<json::object> config = read_json_file(path, kMaxTokenizerFile);
  if (!config) return std::unexpected(config.error());
  const FileFaults fault(path);
  ChatTemplateText out{.path = path};
  if (const json::value* const templates = config->if_contains("chat_template")) {
    if (auto read = read_templates(*templates, fault, out); !read) {
      return std::unexpected(std::move(read.error()));
    }
  }
  if (auto read = read_tokens(*config, fault, out); !read) {
    return std::unexpected(std::move(read.error()));
  }
  if (std::max(out.text.size(), out.tool_text.size()) > kMaxChatTemplate) {
    return fault.of(kContentTooLarge, "has a chat_template that is longer than 1 MiB");
  }
  return out;
}

Result<std::string> read_jinja(const std::string& path) {
  Result<std::string> text = read_text_file(path, kMaxTokenizerFile);
  if (!text) return text;
  const FileFaults fault(path);
  if (text->empty()) return fault("is empty");
  if (text->size() > kMaxChatTemplate) {
    return fault.of(kContentTooLarge, "is longer than 1 MiB");
  }
  return text;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

Result<ChatTemplateText> read_chat_template(const std::string& path) {
  if (path.ends_with(".json")) {
    Result<ChatTemplateText> config = read_config(path);
    if (config && config->text.empty()) return FileFaults(path)("has no chat_template");
    return config;
  }
  Result<std::string> text = read_jinja(path);
  if (!text) return std::unexpected(std::move(text.error()));
  return ChatTemplateText{.path = path, .text = *std::move(text)};
}

Result<ChatTemplateText> find_chat_template(const std::string& model_path,
                                            const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(model_path).parent_path();
  const std::string config = (folder / kConfig).string();
  const std::string jinja = path.empty() ? (folder / kJinja).string() : path;
  if (path.ends_with(".json")) return read_chat_template(path);
  ChatTemplateText out;
  if (is_there(config)) {
    Result<ChatTemplateText> read = read_config(config);
    if (!read) return read;
    out = *std::move(read);
  }
  if (!path.empty() || is_there(jinja)) {
    Result<std::string> text = read_jinja(jinja);
    if (!text) return std::unexpected(std::move(text.error()));
    out.path = jinja;
    out.text = *std::move(text);
    out.tool_text.clear();
  }
  return out;
}

}  // namespace sluice
