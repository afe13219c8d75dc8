"""What hidden tests need, over the stages of real repositories."""
