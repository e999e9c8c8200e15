#include "train/finetune/task_epochs.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/folder.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kEpochs = "epochs.json";

}  // namespace

TaskEpochs::TaskEpochs(const TaskData& data, const PretrainOptions& options, const Plan& plan,
                       Rank& rank, RunLog& log, const Progress& progress)
    : data_(data),
      options_(options),
      plan_(plan),
      rank_(rank),
      log_(log),
      steps_(data.epochs() > 0 ? data.steps_per_epoch() : 0) {
  if (progress.iteration > 0 && !options.checkpoint.save.empty()) {
    read_epochs(progress.iteration);
  }
}

std::optional<std::int64_t> TaskEpochs::ended_by(std::int64_t iteration) const {
  if (steps_ == 0 || iteration == 0 || iteration % steps_ != 0) {
    return std::nullopt;
  }
  return iteration / steps_ - 1;
}

bool TaskEpochs::evaluated(std::int64_t epoch) const {
  return std::ranges::find(epochs_, epoch, &Epoch::number) != epochs_.end();
}

std::string TaskEpochs::beginning_line(std::int64_t iteration) const {
  return iteration % steps_ == 0 ? fmt::format("working on epoch {} ...", iteration / steps_ + 1)
                                 : "";
}

void TaskEpochs::evaluate(std::int64_t epoch, const Progress& progress, const FeedOptions& feed,
                          const std::function<void()>& pause) {
  const TaskKind& kind = data_.kind();
  log_.line(metrics_line(kind));
  Epoch result{.number = epoch, .iteration = progress.iteration};
  TaskSamples all_samples;
  std::vector<TaskOutputs> all_answers;
  for (const TaskData::Set& set : data_.sets()) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<TaskOutputs> told = answers(set, progress.iteration, feed, pause);
    result.sets.push_back({set.name, scores_of(*set.samples, told)});
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    for (const std::string& line : score_lines(kind, epoch, result.sets.back(), elapsed.count())) {
      log_.line(line);
    }
    if (epoch == kNoTraining) {
      write_answers(set, told);
    }
    if (set.labelled) {
      all_samples.insert(all_samples.end(), set.samples->begin(), set.samples->end());
      all_answers.insert(all_answers.end(), told.begin(), told.end());
    }
  }
  const TaskScores all = scores_of(all_samples, all_answers);
  if (const std::string line = overall_line(kind, epoch, all); !line.empty()) {
    log_.line(line);
  }
  result.score = all.best_by(kind.metric);
  if (epoch != kNoTraining) {
    log_.scalar("task score", result.score, progress);
    epochs_.push_back(std::move(result));
  }
}

TaskScores TaskEpochs::scores_of(const TaskSamples& samples,
                                 const std::vector<TaskOutputs>& outputs) const {
  return data_.kind().answer == TaskAnswer::passage
             ? judge_ranks(outputs,
                           find_family(plan_.rank.model.family).towers(plan_.rank.model).topk)
             : score(data_.kind(), samples, outputs);
}

std::int64_t TaskEpochs::micro_batch() const {
  return options_.task.evaluation_micro_batch.value_or(plan_.micro_batch);
}

std::int64_t TaskEpochs::batch() const {
  return plan_.batch.global() / plan_.micro_batch * micro_batch();
}

std::vector<TaskOutputs> TaskEpochs::answers(const TaskData::Set& set, std::int64_t completed_steps,
                                             const FeedOptions& feed,
                                             const std::function<void()>& pause) {
  const TrainingData data(options_.data, {nullptr, data_.of_set(set, batch()), nullptr});
  FeedOptions own = feed;
  own.micro_batch = micro_batch();
  BatchFeed batches(data, Split::valid, own, rank_.stream());
  const auto samples = static_cast<std::int64_t>(set.samples->size());
  std::vector<float> mine;
  for (std::int64_t begin = 0; begin < samples; begin += batch()) {
    pause();
    const std::vector<float> more =
        rank_.answers({.num_micro_batches = batch() / (micro_batch() * plan_.data_ranks),
                       .batch = [&](std::int64_t) { return batches.next(); },
                       .completed_steps = completed_steps});
    mine.insert(mine.end(), more.begin(), more.end());
  }
  return gathered(mine, samples);
}

// Data-parallel ranks have micro-batches in turns; of the ranks that share one, the first of those
// with the head speaks.
std::vector<TaskOutputs> TaskEpochs::gathered(const std::vector<float>& mine,
                                              std::int64_t num_samples) const {
  std::vector<double> message;
  if (!mine.empty() && rank_.mesh().coordinate(Axis::tensor) == 0) {
    message.push_back(rank_.mesh().coordinate(Axis::data));
    message.insert(message.end(), mine.begin(), mine.end());
  }
  const auto all = rank_.mesh().host().gather_numbers("answers", message);
  const std::int64_t micro = micro_batch(), block = micro * plan_.data_ranks;
  const std::int64_t batches = (num_samples + batch() - 1) / batch();
  const std::int64_t held = batches * batch() / plan_.data_ranks;  // by each
  std::vector<TaskOutputs> outputs(static_cast<std::size_t>(num_samples));
  for (const std::vector<double>& part : all) {
    if (part.empty()) {
      continue;
    }
    const auto rank = static_cast<std::int64_t>(part[0]);
    const std::int64_t width = (std::ssize(part) - 1) / held;
    for (std::int64_t i = 0; i < held; ++i) {
      const std::int64_t sample = i / micro * block + rank * micro + i % micro;
      if (sample < num_samples) {
        const auto begin = part.begin() + 1 + i * width;
        outputs[static_cast<std::size_t>(sample)].assign(begin, begin + width);
      }
    }
  }
  return outputs;
}

void TaskEpochs::write_answers(const TaskData::Set& set,
                               const std::vector<TaskOutputs>& answers) const {
  const std::string& folder = options_.checkpoint.save;
  if (folder.empty() || rank_.mesh().host().rank() != 0) {
    return;
  }
  const TaskKind& kind = data_.kind();
  std::string text = "index\tprediction\n";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto told = static_cast<std::size_t>(chosen(answers[i]));
    const bool number =
        kind.answer == TaskAnswer::number || kind.answer == TaskAnswer::passage;  // a rank
    const std::string answer = number ? fmt::format("{}", answers[i][0])
                               : kind.answer == TaskAnswer::choice
                                   ? std::string(1, static_cast<char>('A' + told))
                                   : std::string(kind.labels[told]);
    text += fmt::format("{}\t{}\n", (*set.samples)[i].uid, answer);
  }
  std::filesystem::create_directories(folder);
  AtomicFile file(std::filesystem::path(folder) / fmt::format("predictions_{}.tsv", set.name));
  file.write(text);
  file.commit();
}

const TaskEpochs::Epoch* TaskEpochs::best() const {
  const auto found = std::ranges::max_element(epochs_, {}, &Epoch::score);
  return found == epochs_.end() ? nullptr : &*found;
}

std::string TaskEpochs::to_json() const {
  Json all = Json::array();
  for (const Epoch& epoch : epochs_) {
    Json sets = Json::object();
    for (const SetScores& set : epoch.sets) {
      sets[set.name] = Json::parse(scores_json(data_.kind(), set.scores));
    }
    all.push_back({{"epoch", epoch.number},
                   {"iteration", epoch.iteration},
                   {"score", std::isfinite(epoch.score) ? Json(epoch.score) : Json(nullptr)},
                   {"sets", sets}});
  }
  return Json{{"task", data_.kind().name}, {"best", best()->number}, {"epochs", all}}.dump(2) +
         "\n";
}

void TaskEpochs::mark_best() const {
  if (options_.checkpoint.save.empty() || rank_.mesh().host().rank() != 0) {
    return;
  }
  try {
    write_epochs();
  } catch (const std::exception& error) {  // the checkpoints are there all the same
    log_.warning(concat("the best epoch could not be marked: ", error.what()));
  }
}

void TaskEpochs::write_epochs() const {
  namespace fs = std::filesystem;
  const fs::path folder = options_.checkpoint.save;
  AtomicFile file(folder / kEpochs);
  file.write(to_json());
  file.commit();
  const std::string name = step_name(best()->iteration);
  const bool saved = fs::exists(folder / name);
  if (saved) {
    const fs::path link = folder / kBestName, fresh = folder / (std::string(kBestName) + ".tmp");
    fs::remove(fresh);
    fs::create_directory_symlink(name, fresh);
    fs::rename(fresh, link);
  }
  log_.line(fmt::format(" the best epoch so far is {}, {}", best()->number,
                        saved ? (folder / name).string() : "whose save failed"));
}

void TaskEpochs::read_epochs(std::int64_t until) {
  const std::filesystem::path path = std::filesystem::path(options_.checkpoint.save) / kEpochs;
  if (!std::filesystem::exists(path)) {
    return;
  }
  try {
    const Json all = Json::parse(read_file(path));
    for (const Json& each : all.at("epochs")) {
      const Json& score = each.at("score");
      Epoch epoch{.number = each.at("epoch"),
                  .iteration = each.at("iteration"),
                  .score = score.is_number() ? score.get<double>() : -INFINITY};
      for (const auto& [name, set] : each.at("sets").items()) {
        epoch.sets.push_back({name, read_scores(set.dump())});
      }
      if (epoch.iteration <= until) {
        epochs_.push_back(std::move(epoch));
      }
    }
  } catch (const Json::exception& error) {
    epochs_.clear();
    log_.warning(
        concat(path.string(), " cannot be read, and earlier epochs do not count: ", error.what()));
  }
}

}  // namespace bloomery
