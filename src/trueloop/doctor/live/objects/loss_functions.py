"""The loss functions of `torch.nn.functional`, and what their modules are called."""

KINDS = {
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "mse_loss": "MSELoss",
    "l1_loss": "L1Loss",
    "smooth_l1_loss": "SmoothL1Loss",
    "huber_loss": "HuberLoss",
    "kl_div": "KLDivLoss",
    "poisson_nll_loss": "PoissonNLLLoss",
    "gaussian_nll_loss": "GaussianNLLLoss",
    "multi_margin_loss": "MultiMarginLoss",
    "multilabel_margin_loss": "MultiLabelMarginLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss",
    "soft_margin_loss": "SoftMarginLoss",
    "hinge_embedding_loss": "HingeEmbeddingLoss",
    "cosine_embedding_loss": "CosineEmbeddingLoss",
    "margin_ranking_loss": "MarginRankingLoss",
    "triplet_margin_loss": "TripletMarginLoss",
    "ctc_loss": "CTCLoss",
}
