//! Which task mirrors which partition.
//!
//! A first assignment is Java's (`MirrorSourceConnector.taskConfigs`): the i-th partition goes to
//! task i mod n. From then on ours is sticky where Java deals everything out anew: what runs stays
//! where it runs, so that a new topic never stops an old one.

use std::collections::HashSet;
use std::hash::Hash;

/// Spreads `wanted` over at most `tasks_max` tasks, leaving everything in `current` where it is.
///
/// `current` holds what each running task has; it is empty at the start. The result has one list
/// per task, running tasks first and in their order. What is no longer wanted leaves its task. A
/// new partition goes to the task with the fewest, the lowest number among equals; a task is added
/// while there are fewer than `tasks_max` and every other one has something to do. A task is never
/// taken away here: one that has nothing left costs nothing.
pub fn assign<P: Clone + Eq + Hash>(
    current: &[Vec<P>],
    wanted: &[P],
    tasks_max: usize,
) -> Vec<Vec<P>> {
    let wanted_set: HashSet<&P> = wanted.iter().collect();
    let mut tasks: Vec<Vec<P>> = current
        .iter()
        .map(|had| {
            had.iter()
                .filter(|p| wanted_set.contains(p))
                .cloned()
                .collect()
        })
        .collect();
    let running: HashSet<&P> = current.iter().flatten().collect();
    for partition in wanted.iter().filter(|p| !running.contains(p)) {
        let fewest = tasks.iter().map(Vec::len).min();
        if tasks.len() < tasks_max.max(1) && fewest != Some(0) {
            tasks.push(vec![partition.clone()]);
        } else if let Some(task) = tasks.iter_mut().min_by_key(|task| task.len()) {
            task.push(partition.clone());
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_assignment_is_javas_round_robin() {
        // MirrorSourceConnectorTest.testMirrorSourceConnectorTaskConfig: 8 + 2 + 2 partitions over
        // three tasks.
        let all: Vec<String> = [("t0", 8), ("t1", 2), ("t2", 2)]
            .iter()
            .flat_map(|(topic, count)| (0..*count).map(move |n| format!("{topic}-{n}")))
            .collect();

        let tasks = assign(&[], &all, 3);

        let expected = [
            "t0-0,t0-3,t0-6,t1-1",
            "t0-1,t0-4,t0-7,t2-0",
            "t0-2,t0-5,t1-0,t2-1",
        ];
        assert_eq!(
            tasks.iter().map(|t| t.join(",")).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_new_partition_moves_nothing_that_runs() {
        let before = assign(&[], &[1, 2, 3, 4, 5], 2);

        let after = assign(&before, &[0, 1, 2, 3, 4, 5], 2);

        assert_eq!(before, vec![vec![1, 3, 5], vec![2, 4]]);
        assert_eq!(after, vec![vec![1, 3, 5], vec![2, 4, 0]]);
    }

    #[test]
    fn tasks_grow_with_the_partitions_up_to_the_limit() {
        let one = assign(&[], &[1], 3);
        let four = assign(&one, &[1, 2, 3, 4], 3);

        assert_eq!(one, vec![vec![1]]);
        assert_eq!(four, vec![vec![1, 4], vec![2], vec![3]]);
    }

    #[test]
    fn partitions_that_are_gone_leave_their_task() {
        assert_eq!(
            assign(&[vec![1, 3], vec![2]], &[3], 2),
            vec![vec![3], vec![]]
        );
    }

    proptest! {
        #[test]
        fn everything_wanted_runs_exactly_once_and_what_ran_stays(
            first in prop::collection::btree_set(0..60u8, 0..40),
            second in prop::collection::btree_set(0..60u8, 0..40),
            tasks_max in 1..9usize,
        ) {
            let (first, second): (Vec<_>, Vec<_>) =
                (first.into_iter().collect(), second.into_iter().collect());
            let before = assign(&[], &first, tasks_max);
            let after = assign(&before, &second, tasks_max);

            let mut all: Vec<u8> = after.concat();
            all.sort_unstable();
            prop_assert_eq!(&all, &second);
            prop_assert!(after.len() <= tasks_max);
            for (task, had) in before.iter().enumerate() {
                for partition in had.iter().filter(|p| second.contains(p)) {
                    prop_assert!(after[task].contains(partition));
                }
            }
        }
    }
}
