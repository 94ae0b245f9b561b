#include "cli/terminal/line_editor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cwchar>
#include <filesystem>
#include <histedit.h>
#include <poll.h>
#include <string_view>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

#include "cli/options/process_environment.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/utf8.hpp"

namespace sluice {
namespace {

constexpr int kHistoryLines = 1000;
/// What a terminal sends around a pasted block, and how it is told to.
constexpr const char* kPasteBegin = "\x1b[200~";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr std::string_view kMarkPastes = "\x1b[?2004h";
constexpr std::string_view kMarkNoPastes = "\x1b[?2004l";
/// The most characters of a pasted block; the rest is dropped.
constexpr std::size_t kMaxPaste = std::size_t{1} << 20U;
/// Encloses the parts of a prompt that take no space on the screen.
constexpr char kInvisible = '\1';
/// The columns of each prompt.
constexpr std::size_t kPromptColumns = 2;

winsize screen_size() {
  winsize size{};
  ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
  return size;
}

/// How many rows below its prompt the cursor is after `text`, on a screen of `width` columns.
std::size_t rows_below_prompt(std::wstring_view text, std::size_t width) {
  constexpr std::size_t kTabWidth = 8;
  std::size_t row = 0;
  std::size_t column = kPromptColumns;
  for (const wchar_t c : text) {
    if (c == L'\n') {
      ++row;
      column = 0;
      continue;
    }
    const int shown = ::wcwidth(c);
    std::size_t columns = shown < 0 ? 1 : static_cast<std::size_t>(shown);
    if (c == L'\t') columns = kTabWidth - column % kTabWidth;
    if (column + columns > width) {
      ++row;
      column = 0;
    }
    column += columns;
  }
  return column < width ? row : row + 1;
}

}  // namespace

struct LineEditor::State {
  Interrupts* interrupts;
  std::string history_file;
  std::string prompt;
  EditLine* editor = nullptr;
  History* history = nullptr;
  bool interrupted = false;
  bool marks_pastes = !is_dumb_terminal();
  winsize screen{};  // as libedit knows it

  static State& of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<State*>(data);
  }

  static char* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }

  void take_size() {
    screen = screen_size();
    el_resize(editor);
  }

  /// If the terminal has another size than before, draws the line anew from its prompt. libedit
  /// would go on from its old cursor, which may be outside of the new screen.
  void follow_size() {
    const winsize before = screen;
    const winsize now = screen_size();
    if (now.ws_col == before.ws_col && now.ws_row == before.ws_row) return;
    if (is_dumb_terminal()) {
      write_all(STDOUT_FILENO, "\n");
    } else {
      // Some terminals have broken the line anew and some have not. The smaller number of rows
      // spares what is above the line.
      const LineInfoW* typed = el_wline(editor);
      const std::wstring_view text(typed->buffer, typed->cursor);
      const std::size_t rows =
          std::min(rows_below_prompt(text, before.ws_col), rows_below_prompt(text, now.ws_col));
      const std::string up = rows == 0 ? "" : "\x1b[" + std::to_string(rows) + "A";
      write_all(STDOUT_FILENO, "\r" + up + "\x1b[J");
    }
    take_size();
    el_set(editor, EL_REFRESH);
  }

  /// Reads the next character for libedit. Waits for standard input and for interrupts.
  static int next_character(EditLine* editor, wchar_t* out) {
    State& self = of(editor);
    std::mbstate_t partial{};
    for (;;) {
      std::array<pollfd, 2> waits{{{STDIN_FILENO, POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}}};
      if (::poll(waits.data(), waits.size(), -1) < 0) {
        if (errno != EINTR) return -1;
        if (Interrupts::take_continued()) {
          // The process was stopped and continued. In the meantime the shell had the terminal.
          el_set(editor, EL_PREP_TERM, 1);
          if (self.marks_pastes) write_all(STDOUT_FILENO, kMarkPastes);
          self.take_size();
          el_set(editor, EL_REFRESH);
        }
        self.follow_size();
        waits[0].revents = 0;
        waits[1].revents = POLLIN;
      }
      if (waits[1].revents != 0 && self.interrupts->take()) {
        self.interrupted = true;
        return -1;
      }
      if (waits[0].revents == 0) continue;
      char byte = 0;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got == 0) return 0;
      if (got < 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        return -1;
      }
      constexpr auto kNoCharacter = static_cast<std::size_t>(-1);
      constexpr auto kMoreToCome = static_cast<std::size_t>(-2);
      std::size_t used = std::mbrtowc(out, &byte, 1, &partial);
      if (used == kNoCharacter) {
        // Bytes that are not UTF-8 are skipped. This one may begin a new character.
        partial = {};
        used = std::mbrtowc(out, &byte, 1, &partial);
      }
      if (used == kNoCharacter) partial = {};
      if (used != kNoCharacter && used != kMoreToCome) return 1;
    }
  }

  /// Inserts a pasted block, which may have several lines.
  static unsigned char paste(EditLine* editor, wint_t /*key*/) {
    std::wstring text;
    while (!text.ends_with(kPasteEnd)) {
      wchar_t next = 0;
      if (next_character(editor, &next) <= 0) return CC_EOF;
      if (text.size() == kMaxPaste) text.erase(text.size() - kPasteEnd.size(), 1);
      text.push_back(next);
    }
    text.resize(text.size() - kPasteEnd.size());
    insert(editor, text);
    return CC_REFRESH;
  }

  static void insert(EditLine* editor, std::wstring_view pasted) {
    std::wstring text;
    for (const wchar_t c : pasted) {
      if (c == L'\r') {
        text.push_back(L'\n');  // terminals send line breaks as the key Enter
      } else if (c == L'\n' || c == L'\t' || !is_control(static_cast<char32_t>(c))) {
        text.push_back(c);
      }
    }
    while (text.ends_with(L'\n')) text.pop_back();
    if (!text.empty()) el_winsertstr(editor, text.c_str());
  }
};

LineEditor::LineEditor(Interrupts& interrupts, std::string history_file)
    : state_(std::make_unique<State>()) {
  use_utf8();
  state_->interrupts = &interrupts;
  state_->history_file = std::move(history_file);
  state_->editor = el_init("sluice", stdin, stdout, stderr);
  state_->history = history_init();
  if (state_->editor == nullptr || state_->history == nullptr) {
    throw std::system_error(ENOMEM, std::generic_category(), "libedit");
  }
  HistEvent event;
  history(state_->history, &event, H_SETSIZE, kHistoryLines);
  history(state_->history, &event, H_SETUNIQUE, 1);
  if (!state_->history_file.empty()) {
    history(state_->history, &event, H_LOAD, state_->history_file.c_str());
  }
  EditLine* editor = state_->editor;
  el_set(editor, EL_CLIENTDATA, state_.get());
  el_set(editor, EL_PROMPT_ESC, &State::show_prompt, kInvisible);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_HIST, history, state_->history);
  el_set(editor, EL_GETCFN, &State::next_character);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(editor, EL_ADDFN, "sluice-paste", "Insert a pasted block", &State::paste);
  el_set(editor, EL_BIND, kPasteBegin, "sluice-paste", nullptr);
  el_source(editor, nullptr);
  if (state_->marks_pastes) write_all(STDOUT_FILENO, kMarkPastes);
}

LineEditor::~LineEditor() {
  if (state_->marks_pastes) write_all(STDOUT_FILENO, kMarkNoPastes);
  el_end(state_->editor);
  history_end(state_->history);
}

LineEditor::Result LineEditor::read(const std::string& prompt, const std::string& colour,
                                    std::string& line) {
  state_->prompt = prompt;
  if (!colour.empty()) {
    // libedit shows an invisible part only if a character follows it.
    const std::string mark(1, kInvisible);
    const std::size_t most = prompt.empty() ? 0 : prompt.size() - 1;
    state_->prompt = mark + colour + mark + prompt.substr(0, most) + mark + "\x1b[0m" + mark +
                     prompt.substr(most);
  }
  state_->interrupted = false;
  state_->take_size();
  // libedit prepares the terminal only after it has shown the prompt. Until then, control
  // characters such as the one for end of input would have another meaning.
  el_set(state_->editor, EL_PREP_TERM, 1);
  int count = 0;
  const char* text = el_gets(state_->editor, &count);
  line.clear();
  if (text == nullptr || count <= 0) {
    if (!state_->interrupted) return Result::end_of_input;
    const LineInfo* typed = el_line(state_->editor);
    line.assign(typed->buffer, typed->lastchar);
    el_reset(state_->editor);
    return Result::interrupted;
  }
  line.assign(text, static_cast<std::size_t>(count));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return Result::line;
}

void LineEditor::remember(const std::string& line) {
  HistEvent event;
  history(state_->history, &event, H_ENTER, line.c_str());
  if (state_->history_file.empty()) return;
  std::error_code failed;
  const auto folder = std::filesystem::path(state_->history_file).parent_path();
  if (std::filesystem::create_directories(folder, failed)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  }
  // A history that cannot be saved is not reported, so as not to disturb the conversation.
  history(state_->history, &event, H_SAVE, state_->history_file.c_str());
}

std::string default_history_file() {
  if (const auto state = environment("XDG_STATE_HOME")) return *state + "/sluice/chat_history";
  if (const auto home = environment("HOME")) return *home + "/.local/state/sluice/chat_history";
  return {};
}

}  // namespace sluice
