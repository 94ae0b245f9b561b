#pragma once

#include <functional>
#include <string_view>

#include "cli/remote/remote_options.hpp"
#include "cli/remote/remote_words.hpp"
#include "cli/targets/target.hpp"
#include "core/error.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// Connects to `target` as `options` say. `client` has what the command can be asked. Errors carry
/// an exit code.
Result<Client> connect_to(Target target, const RemoteOptions& options, ClientOptions client);

/// Splits the words, connects, runs `work`, and complains in the name of `command` about what
/// fails, such as `client`, which is as of connect_to(). An interrupt by the user cancels
/// connecting and all requests. Returns the program's exit code.
int with_server(std::string_view command, const RemoteOptions& options, const WordForm& form,
                Result<ClientOptions> client,
                const std::function<int(Client&, const RemoteWords&)>& work);

}  // namespace sluice
