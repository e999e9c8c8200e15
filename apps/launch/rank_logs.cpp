#include "apps/launch/rank_logs.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "base/error.h"
#include "base/log.h"

namespace bloomery {
namespace {

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", localtime_r(&now, &parts));
  return text;
}

void make_folder(const std::filesystem::path& folder, const char* flag) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  check(std::filesystem::is_directory(folder, failed), flag, ": ", folder.string(),
        " cannot be made a folder; give another one");
}

// A new folder RUN_xxxxxx, as torchrun makes it; without --log-dir among the temporary files.
std::filesystem::path make_run_folder(std::filesystem::path base, const std::string& run_id) {
  if (base.empty()) {
    base = std::filesystem::temp_directory_path();
  }
  make_folder(base, "--log-dir");
  std::string path = (base / ((run_id.empty() ? "none" : run_id) + "_XXXXXX")).string();
  check(mkdtemp(path.data()) != nullptr, "--log-dir: no folder can be made in ", base.string());
  Log().info("output of the ranks: ", path);
  return path;
}

}  // namespace

RankLogs::RankLogs(const LaunchOptions& options)
    : output_folder_(options.output_folder),
      each_rank_(options.each_rank_log == "None" ? "" : options.each_rank_log),
      prefix_(options.log_prefix.empty() ? time_text() : options.log_prefix),
      log_folder_(options.log_folder),
      run_id_(options.run_id),
      redirects_(parse(options.redirects, "--redirects")),
      tee_(parse(options.tee, "--tee")),
      shown_(options.shown_ranks) {
  if (!output_folder_.empty()) {
    make_folder(output_folder_, "--output-folder");
  }
  if (!each_rank_.empty()) {
    make_folder(each_rank_, "--enable_each_rank_log");
  }
}

RankLogs::Streams RankLogs::parse(const std::string& text, const char* flag) {
  Streams streams;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t colon = word.find(':');
    int rank = -1, which = -1;
    const char* const last = word.data() + word.size();
    const char* const middle = colon == std::string::npos ? word.data() : word.data() + colon + 1;
    bool good = std::from_chars(middle, last, which).ptr == last && which >= 0 && which <= 3;
    if (colon != std::string::npos) {
      const char* const end = word.data() + colon;
      good = good && std::from_chars(word.data(), end, rank).ptr == end && rank >= 0;
    }
    check(good, flag, " ", text,
          ": write 0 (nothing), 1 (stdout), 2 (stderr) or 3 (both), or such a number for each "
          "local rank, 0:3,1:2");
    streams[rank] = which;
  }
  return streams;
}

int RankLogs::of(const Streams& streams, int local_rank) {
  const auto own = streams.find(local_rank), all = streams.find(-1);
  return own != streams.end() ? own->second : all != streams.end() ? all->second : 0;
}

void RankLogs::apply(ChildCommand& child, int rank, int local_rank, int attempt) {
  child.prefix = rank == 0 ? "" : concat("[rank ", rank, "] ");
  const int redirected = of(redirects_, local_rank), copied = of(tee_, local_rank);
  if (!output_folder_.empty()) {
    child.output = {concat(output_folder_, "/rank-", rank, ".log"), rank == 0};
  } else if (!each_rank_.empty()) {
    child.output = {concat(each_rank_, "/", prefix_, "_rank", rank, ".log"), false};
  } else if ((redirected | copied) != 0) {
    if (run_folder_.empty()) {
      run_folder_ = make_run_folder(log_folder_, run_id_);
    }
    const std::filesystem::path folder =
        run_folder_ / concat("attempt_", attempt) / std::to_string(local_rank);
    make_folder(folder, "--log-dir");
    const auto target = [&](int stream, const char* file) {
      const bool to_file = ((redirected | copied) & stream) != 0;
      return OutputTarget{to_file ? (folder / file).string() : "",
                          (redirected & stream) == 0 || (copied & stream) != 0};
    };
    child.output = target(1, "stdout.log");
    child.errors = target(2, "stderr.log");
  } else {
    child.own_terminal = rank == 0;
  }
  if (!shown_.empty() && std::ranges::count(shown_, local_rank) == 0) {
    child.own_terminal = false;
    child.output.to_screen = false;
    if (child.errors) {
      child.errors->to_screen = false;
    }
  }
}

}  // namespace bloomery
