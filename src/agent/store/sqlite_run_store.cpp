#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sqlite3.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "core/error.hpp"
#include "sluice/run_store.hpp"

namespace sluice {
namespace {

constexpr int kPatienceMs = 5000;  // while another process writes
constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, version INTEGER NOT NULL, "
    "saved INTEGER NOT NULL, state TEXT NOT NULL)";

/// Throws what a database says.
[[noreturn]] void complain(sqlite3* database, std::string_view path) {
  throw Error{500, "The runs in " + std::string(path) + ": " + ::sqlite3_errmsg(database), {}};
}

/// A statement, with its parameters.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& path, const char* sql)
      : database_(database), path_(&path) {
    if (::sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) != SQLITE_OK) {
      complain(database, path);
    }
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    check(::sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_STATIC,
                                SQLITE_UTF8));
    return *this;
  }
  Statement& bind(std::uint64_t number) {
    check(::sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(number)));
    return *this;
  }
  /// Returns whether there is a row.
  bool step() {
    const int outcome = ::sqlite3_step(statement_);
    if (outcome != SQLITE_ROW && outcome != SQLITE_DONE) complain(database_, *path_);
    return outcome == SQLITE_ROW;
  }
  [[nodiscard]] std::string text(int column) const {
    const auto* const bytes = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
    const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column));
    return bytes == nullptr ? std::string() : std::string(bytes, size);
  }
  [[nodiscard]] std::uint64_t number(int column) const {
    return static_cast<std::uint64_t>(::sqlite3_column_int64(statement_, column));
  }

 private:
  void check(int outcome) {
    if (outcome != SQLITE_OK) complain(database_, *path_);
  }

  sqlite3* database_;
  const std::string* path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

class SqliteRunStore final : public RunStore {
 public:
  explicit SqliteRunStore(std::string path) : path_(std::move(path)) {
    if (path_ == ":memory:") {
      throw Error{500, "Runs are kept in a file, and :memory: is none for SQLite", {}};
    }
    // SQLite would make it with the mode that the process's umask leaves.
    const int made = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (made < 0) {
      throw Error{500, "The runs in " + path_ + " cannot be opened: " + std::strerror(errno), {}};
    }
    const int known = ::fstat(made, &file_);
    ::close(made);
    if (known != 0) throw Error{500, "The runs in " + path_ + " cannot be looked at", {}};
    const int opened = ::sqlite3_open_v2(path_.c_str(), &database_,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr);
    try {
      if (opened != SQLITE_OK) complain(database_, path_);
      ::sqlite3_busy_timeout(database_, kPatienceMs);
      Statement(database_, path_, "PRAGMA journal_mode=WAL").step();
      // A state is durable when save() has returned, also if the power fails.
      Statement(database_, path_, "PRAGMA synchronous=FULL").step();
      Statement(database_, path_, kTable).step();
    } catch (...) {
      ::sqlite3_close(database_);
      throw;
    }
  }
  ~SqliteRunStore() override { ::sqlite3_close(database_); }
  SqliteRunStore(const SqliteRunStore&) = delete;
  SqliteRunStore& operator=(const SqliteRunStore&) = delete;

  std::uint64_t save(const std::string& run_id, const std::string& state,
                     std::uint64_t version) override {
    const std::lock_guard lock(mutex_);
    require_file();
    // One statement, so that nobody else saves in between.
    Statement statement(
        database_, path_,
        version == 0 ? "INSERT INTO runs (id, version, saved, state) VALUES (?1, 1, "
                       "unixepoch(), ?2) ON CONFLICT (id) DO NOTHING RETURNING version"
                     : "UPDATE runs SET version = version + 1, saved = unixepoch(), state = ?2 "
                       "WHERE id = ?1 AND version = ?3 RETURNING version");
    statement.bind(run_id).bind(state);
    if (version != 0) statement.bind(version);
    if (!statement.step()) {
      throw Error{kBusy, "The run " + run_id + " goes on elsewhere, so it must not here", {}};
    }
    const std::uint64_t saved = statement.number(0);
    statement.step();
    return saved;
  }

  KeptRun load(const std::string& run_id) override {
    const std::lock_guard lock(mutex_);
    Statement statement(database_, path_, "SELECT state, version FROM runs WHERE id = ?1");
    if (!statement.bind(run_id).step()) return {};
    return {.state = statement.text(0), .version = statement.number(1)};
  }

  std::vector<std::string> list() override {
    const std::lock_guard lock(mutex_);
    Statement statement(database_, path_, "SELECT id FROM runs ORDER BY saved DESC, rowid DESC");
    std::vector<std::string> ids;
    while (statement.step()) ids.push_back(statement.text(0));
    return ids;
  }

  void erase(const std::string& run_id) override {
    const std::lock_guard lock(mutex_);
    Statement(database_, path_, "DELETE FROM runs WHERE id = ?1").bind(run_id).step();
  }

 private:
  /// SQLite goes on with a file that was deleted, which nobody can open any more.
  void require_file() const {
    struct stat now{};
    const bool is_same = ::stat(path_.c_str(), &now) == 0 && now.st_dev == file_.st_dev &&
                         now.st_ino == file_.st_ino;
    if (!is_same) throw Error{500, "The runs in " + path_ + ": the file was moved or deleted", {}};
  }

  const std::string path_;  // absolute
  struct stat file_{};      // as it was opened
  std::mutex mutex_;
  sqlite3* database_ = nullptr;
};

}  // namespace

std::shared_ptr<RunStore> sqlite_run_store(const std::string& path) {
  // A program may go to another folder.
  const bool is_relative = !path.empty() && path.front() != '/' && path != ":memory:";
  std::error_code error;
  return std::make_shared<SqliteRunStore>(
      is_relative ? std::filesystem::absolute(path, error).string() : path);
}

}  // namespace sluice
