// A resource, a resource template with completion, a prompt, and notifications of changes.

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/server.hpp"

/// Notes by name. Thread-safe, because handlers run on several event loops.
class Notes {
 public:
  void set(const std::string& name, std::string text) {
    const std::lock_guard lock(mutex_);
    notes_.insert_or_assign(name, std::move(text));
  }
  std::string get(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(name);
    if (found == notes_.end()) throw sluice::Error{-32602, "There is no note " + name};
    return found->second;
  }
  std::vector<std::string> names(const std::string& prefix) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [name, text] : notes_) {
      if (name.starts_with(prefix)) out.push_back(name);
    }
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> notes_ = {{"groceries", "bread, apples"}};
};

struct Note {
  std::string name;
  std::string text;
};
struct Name {
  std::string name;
};

int main(int count, char** arguments) {
  Notes notes;
  sluice::Server server("notes", "1.0");
  server.resource("note://about", "about", [] { return std::string("Notes, one a name."); },
                  {.mime_type = "text/plain"});
  server.resource_template("note://by-name/{name}", "note",
                           [&notes](Name in) { return notes.get(in.name); },
                           {.description = "A note", .mime_type = "text/plain"});
  server.completion(sluice::TemplateRef{"note://by-name/{name}"}, "name",
                    [&notes](const std::string& typed) { return notes.names(typed); });
  server.prompt("summarise", "Summarises a note",
                [&notes](Name in) { return "Summarise this: " + notes.get(in.name); });
  server.tool("write_note", "Writes a note", [&notes, &server](Note in) {
    notes.set(in.name, in.text);
    server.resource_updated("note://by-name/" + in.name);
    return "Written";
  });
  return sluice::serve(server, sluice::command_line{count, arguments});
}
