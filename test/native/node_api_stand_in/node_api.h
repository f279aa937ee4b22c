// Stands for Node's header where only the errors of the preprocessor count.
