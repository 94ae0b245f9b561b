#pragma once

namespace sluice {

class CommandLine;

// Each adds one subcommand to `program`.
void add_serve_command(CommandLine& program);
void add_chat_command(CommandLine& program);
void add_import_config_command(CommandLine& program);
void add_agent_command(CommandLine& program);
void add_doctor_command(CommandLine& program);
void add_bench_command(CommandLine& program);
void add_servers_command(CommandLine& program);
void add_mcp_command(CommandLine& program);
void add_login_command(CommandLine& program);
void add_logout_command(CommandLine& program);
void add_info_command(CommandLine& program);
void add_ping_command(CommandLine& program);
void add_tools_command(CommandLine& program);
void add_call_command(CommandLine& program);
void add_resources_command(CommandLine& program);
void add_read_command(CommandLine& program);
void add_prompts_command(CommandLine& program);
void add_prompt_command(CommandLine& program);
void add_complete_command(CommandLine& program);
void add_watch_command(CommandLine& program);
void add_tasks_command(CommandLine& program);
void add_proxy_command(CommandLine& program);
void add_session_command(CommandLine& program);
void add_version_command(CommandLine& program);
// These read the outline of `program`, which must outlive its run.
void add_completion_command(CommandLine& program);
/// Call it last: it offers a page of every command that was added before.
void add_man_command(CommandLine& program);

}  // namespace sluice
