#pragma once

#include <string>

#include "sluice/client_authorization.hpp"

namespace sluice {

/// Opens `url` in the user's browser: on a desktop, and if a person sits at a terminal. Returns
/// whether something was started that does so.
bool open_browser(const std::string& url);

/// Tells the user on standard error what to do to log in, and opens a browser if that is possible
/// and wanted.
void show_login(const LoginPrompt& prompt, bool may_open);

}  // namespace sluice
