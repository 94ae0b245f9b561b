#pragma once

namespace sluice {

class CommandLine;

// Each adds one subcommand to `program`.
void add_serve_command(CommandLine& program);
void add_chat_command(CommandLine& program);
void add_doctor_command(CommandLine& program);
void add_bench_command(CommandLine& program);
void add_version_command(CommandLine& program);

}  // namespace sluice
