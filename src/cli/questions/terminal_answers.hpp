#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// Where a user is asked.
struct AskedUser {
  std::function<void(std::string_view text)> show;
  /// A line without its line break. Nothing: the user wants to answer no more.
  std::function<std::optional<std::string>()> read_line;
  /// As long as it lives, nobody on another thread has the user.
  std::shared_ptr<void> turn = {};
};

/// Whether standard input and standard error are a terminal.
bool has_terminal_user();
/// The user there. Waits until others have asked; keep it for one question and its parts, on one
/// thread. The reading ends when nobody waits for the answer any more, which `over` says; what was
/// typed is dropped then, and the user is told unless they have interrupted the program. Nothing:
/// there is no terminal, or that was so before its turn came.
std::optional<AskedUser> terminal_user(std::stop_token over = question_stop());

/// What somebody means who types yes, no, or the like.
std::optional<bool> said_yes(std::string_view text);

/// Asks the user what a server wants to know, and returns the result of elicitation/create
/// (2025-11-25, Elicitation).
///
/// - A form: each field is asked for with its type, its default and its values. What does not fit
///   the field's schema is asked for again, at most kMaxAttempts times. Then the user sees what is
///   sent and agrees. A form of more than kMaxFields fields is declined.
/// - A URL: is shown with its host, and the user says whether they go there. It is not opened.
///
/// `accept` if the user agrees, `decline` if not, `cancel` at the end of the input.
json::object ask_user(const json::object& params, const AskedUser& user);
inline constexpr int kMaxAttempts = 10;
inline constexpr std::size_t kMaxFields = 100;

/// What the user is to do before a request can be answered that the server has refused with error
/// -32042 (2025-11-25, Elicitation, URL Elicitation Required Error): its pages, as above. Nobody
/// waits for an answer. Empty for other errors.
std::string pages_before(const Error& refusal);

/// Client options that answer questions on the terminal. Without a terminal on standard input and
/// on standard error they decline, which is said on standard error.
ClientOptions terminal_answers();

}  // namespace sluice
