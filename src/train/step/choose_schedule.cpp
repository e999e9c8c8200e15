#include "train/step/choose_schedule.h"

#include "base/error.h"
#include "train/step/schedule_record.h"

namespace bloomery {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += "\n  " + line;
  }
  return text;
}

// --extend may change lengths and nothing else.
std::vector<std::string> without_lengths(std::vector<std::string> differences) {
  std::erase_if(differences,
                [](const std::string& line) { return line.starts_with("samples of "); });
  return differences;
}

std::string rate_text(const ScheduleOptions& options, std::int64_t position) {
  return concat(learning_rate(make_schedule(options), position));
}

ScheduleChoice extended(Extend how, const ScheduleOptions& here, const ScheduleOptions& stored,
                        const std::string& place, const Plan& plan, std::int64_t position) {
  const std::vector<std::string> differences = schedule_differences(here, stored);
  if (const std::string others = joined(without_lengths(differences)); !others.empty()) {
    return {stored,
            concat("--extend changes how long is trained and nothing else, but the schedule of ",
                   place, " differs in more; give the flags that the run was started with, or ",
                   "--override-opt_param-scheduler instead of --extend:", others),
            {}};
  }
  if (differences.empty()) {
    return {stored, "", {}};
  }
  const std::string head =
      concat("--extend: the run of ", place, " goes on to iteration ", plan.last_iteration, ". ");
  if (how == Extend::hold) {
    const Schedule schedule = make_schedule(stored);
    return {stored,
            "",
            {concat(head, "Its schedule stays, and ends at ",
                    plan.schedule_in_tokens ? "token " : "sample ", schedule.decay,
                    "; after that the learning rate is ",
                    learning_rate(schedule, schedule.decay + 1))}};
  }
  return {here,
          "",
          {concat(head, "The schedule reaches there: the learning rate of the next step is ",
                  rate_text(here, position), " instead of ", rate_text(stored, position),
                  ". What changes:", joined(differences))}};
}

}  // namespace

ScheduleChoice choose_schedule(const PretrainOptions& options, const Plan& plan,
                               const CheckpointReader* checkpoint) {
  const ScheduleOptions& here = plan.rank.optimizer.schedule;
  const bool loads = checkpoint != nullptr && !options.checkpoint.finetune &&
                     !options.checkpoint.reset_iteration && !options.checkpoint.no_load_optim &&
                     !options.evaluation.skip_train;
  if (!loads || options.rate.override_scheduler ||
      !checkpoint->state().extra.contains("schedule")) {
    return {here, "", {}};
  }
  const RunState& state = checkpoint->state();
  const std::string place = checkpoint->folder().string();
  const ScheduleOptions stored = schedule_from_json(state.extra.at("schedule"), place);
  if (options.rate.use_checkpoint_scheduler) {
    return {stored, "", {}};
  }
  if (options.rate.extend != Extend::no) {
    return extended(options.rate.extend, here, stored, place, plan,
                    std::stoll(state.extra.at("schedule_position")));
  }
  const std::string lines = joined(schedule_differences(here, stored));
  if (lines.empty()) {
    return {stored, "", {}};
  }
  return {
      stored,
      concat("the schedule of ", place, " is not that of the flags. For a new run give ",
             "another --save. To train this one for longer give --extend (the schedule reaches to "
             "the new end) or --extend hold (the ",
             "checkpoint's, then its lowest rate); else --override-opt_param-scheduler to use ",
             "the flags', or --use-checkpoint-opt_param-scheduler to use the checkpoint's:", lines),
      {}};
}

}  // namespace bloomery
