//! Small topics as logs that are read whole, such as the ones Connect keeps its state in.
